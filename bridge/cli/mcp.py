"""`mcp`: the messaging tools of a chat, for a program that is set up by hand.

Owns what the host's own command line adds to the pipe: that it may push into the
chat, and the one attach that it was configured with. Promises that what it starts
holds no credential; that the attach is of the very chat that starts it, with no
more power than an agent's own; and that nothing but the tools' own lines is ever
written to standard output.
"""

from __future__ import annotations

import os
import time

import click
from msgspec import Struct

from bridge.cli.invocation import Invocation, global_options, verb
from bridge.clock import SystemClock
from bridge.core.visible import visible
from bridge.errors import EXIT_USAGE, BridgeError, Refused
from bridge.local.replies import AttachReply, PrepareReply
from bridge.local.requests import Attach, Prepare

# The chat that starts us may not have said yet which one it is, and at a login the
# bridge may start with it.
_PATIENCE_S = 5.0
_PAUSE_S = 0.1
_ATTACH_S = 10.0
_NOT_YET = frozenset(
    {
        "bridge_busy",
        "bridge_not_running",
        "other_session",
        "session_unclear",
        "session_unknown",
    }
)

mcp = click.Group(
    "mcp",
    params=global_options(),
    help="The messaging tools of a chat, for a program that you set up by hand.",
)


class Configured(Struct, frozen=True):
    """The attach that the host's configuration asks for."""

    name: str
    purpose: str
    session_id: str


@verb("serve")
@click.option("--claude-channel", is_flag=True, help="Let messages wake this chat.")
@click.option("--agent", default="", metavar="NAME", help="Attach it under NAME.")
@click.option("--purpose", default="", metavar="TEXT", help="One line for others.")
@click.option("--native-session-id", default="", metavar="ID", help="Only this chat.")
def serve(
    invocation: Invocation,
    claude_channel: bool,
    agent: str,
    purpose: str,
    native_session_id: str,
) -> None:
    """Serve the tools to the program that starts this.

    It is started by a coding agent's program, as a stdio MCP server, and by nobody
    else. With --claude-channel, Claude Code's --agent, --purpose and
    --native-session-id attach exactly that chat.
    """
    wish = _configured(claude_channel, agent, purpose, native_session_id)
    provider = _host()
    if claude_channel and provider != "claude":
        raise Refused(
            "no_channel",
            f"--claude-channel is for Claude Code, and {provider} started this.",
            "Leave it out: its own ways are used by themselves.",
            exit_code=EXIT_USAGE,
        )
    pipe = str(_pipe(invocation))
    if wish is not None:
        _attach(invocation, wish)
    os.execv(  # noqa: S606 - the tools are to be this very child of the host
        pipe, [pipe, "mcp", provider, *(["channel"] if claude_channel else [])]
    )


def _configured(
    is_channel: bool, agent: str, purpose: str, session_id: str
) -> Configured | None:
    given = [bool(word.strip()) for word in (agent, purpose, session_id)]
    if any(given) and not (is_channel and all(given)):
        raise click.UsageError(
            "--agent, --purpose and --native-session-id go together, and with "
            "--claude-channel"
        )
    return Configured(agent, purpose, session_id) if any(given) else None


def _host() -> str:
    """The provider whose program started us; raises Refused."""
    from bridge.providers import discovery, process

    ancestry = process.ancestry_of(os.getpid())
    evidence = discovery.evidence_of(
        ancestry, process.marks_of, lambda _: False, looks_above=False
    )
    if not evidence.found:
        raise Refused(
            "no_host",
            "No coding agent's program started this, so there is no chat to serve.",
            "Name it in that program's settings as a stdio MCP server.",
            exit_code=EXIT_USAGE,
        )
    return evidence.found[0].provider


def _pipe(invocation: Invocation) -> os.PathLike[str]:
    pipe = invocation.paths.bin / "pipe"
    if not pipe.exists():
        from bridge.service.programs import install_programs

        install_programs(invocation.paths)
    return pipe


# ---- the one attach ----------------------------------------------------------------


def _attach(invocation: Invocation, wish: Configured) -> None:
    """Attach the chat that starts us once; the tools are served whatever comes of it.

    A refusal goes to standard error, where hosts keep the words of their servers.
    """
    clock = SystemClock()
    by = clock.running() + _PATIENCE_S
    while True:
        try:
            told = _attached(invocation, wish)
        except BridgeError as error:
            if error.code in _NOT_YET and clock.running() < by:
                time.sleep(_PAUSE_S)
                continue
            told = f"Not attached as {wish.name}: {error.sentence()}"
        click.echo(visible(told), err=True)
        return


def _attached(invocation: Invocation, wish: Configured) -> str:
    folder = os.getcwd()
    prepared = invocation.ask_for(PrepareReply, Prepare(folder=folder))
    (own,) = prepared.sessions if prepared.caller == "own" else (None,)
    if own is None or own.session_id != wish.session_id:
        raise Refused(
            "other_session",
            f"--native-session-id names the chat {wish.session_id}, and another one "
            "is open here.",
            "Start or resume that chat, or name this one.",
        )
    request = Attach(name=wish.name, purpose=wish.purpose, folder=folder)
    reply = invocation.ask_for(AttachReply, request, _ATTACH_S)
    return f"Attached as {reply.name}."


mcp.add_command(serve)
