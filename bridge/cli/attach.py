"""`attach`: set a project up, choose a live chat, give it a name.

Owns the order: what would be written is shown and agreed to before anything is,
and a chat is attached only after its project is set up. Below a coding agent
there is no choice and no set-up: the daemon attaches that very chat.
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path

import click
import msgspec
from msgspec import Struct

from bridge.cli.choosing import choose
from bridge.cli.invocation import Invocation, verb
from bridge.cli.present import advise, document, say, with_program
from bridge.cli.setting_up import PROGRAMS, SetUp, set_up
from bridge.core import remotes, texts
from bridge.core.command import chat_word
from bridge.core.visible import one_line
from bridge.errors import EXIT_USAGE, Refused
from bridge.local.replies import AttachReply, PrepareReply, SessionRow
from bridge.local.requests import Attach, Prepare, Wants
from bridge.providers.scope import Scope, home_of, require_usual_place

_ATTACH_S = 30.0
_KNOWN = ", ".join((*PROGRAMS, "script"))
_ANYWHERE = "here: start one in any of your projects"


class Wish(Struct, frozen=True):
    """What the command line asked for."""

    name: str
    provider: str
    session: str
    native_pid: int
    purpose: str
    folder: Path
    is_agreed: bool
    is_trial: bool
    native_remote: str = ""
    wants: Wants | None = None
    tmux: str = ""
    scope: Scope = Scope.PROJECT


@verb("attach")
@click.argument("name", default="")
@click.option("--provider", default="", metavar="P", help=f"One of {_KNOWN}.")
@click.option("--session", default="", metavar="UUID", help="The chat, by its id.")
@click.option("--purpose", default="", metavar="TEXT", help="One line for others.")
@click.option("--native-pid", default=0, metavar="PID", help="The chat's process.")
@click.option("--native-remote", default="", metavar="URI", help="Its native way.")
@click.option("--tmux", default="", metavar="PANE", help="A line in its idle pane.")
@click.option("--at-prompt", is_flag=True, help="Mail may ride with a prompt too.")
@click.option("--mid-turn", is_flag=True, help="Mail may come after a tool call too.")
@click.option("--no-wake", is_flag=True, help="No message may start a turn.")
@click.option("--usual", is_flag=True, help="End what was chosen so before.")
@click.option("--global", "is_global", is_flag=True, help="For all your projects.")
@click.option("--yes", is_flag=True, help="Agree to what is shown.")
@click.option("--dry-run", is_flag=True, help="Only show what would be done.")
def attach(
    invocation: Invocation,
    name: str,
    provider: str,
    session: str,
    purpose: str,
    native_pid: int,
    native_remote: str,
    tmux: str,
    is_global: bool,
    yes: bool,
    dry_run: bool,
    **wishes: bool,
) -> None:
    """Attach a live chat under NAME.

    Other agents can then write to it.
    The chat's project is set up first: what would be written is shown, and asked
    for. Without a chat in sight, this folder is set up. With --global it is your whole
    account instead, for one provider.
    """
    wish = Wish(
        name,
        provider,
        session,
        native_pid,
        purpose,
        Path.cwd(),
        yes,
        dry_run,
        native_remote,
        _wants(**wishes),
        tmux,
        Scope.ACCOUNT if is_global else Scope.PROJECT,
    )
    prepared = invocation.ask_for(PrepareReply, _prepare(wish))
    if prepared.caller == "own":
        _finish(invocation, wish, prepared.sessions, (), _own(invocation, wish))
        return
    rows = _chosen(wish, prepared)
    done = _set_up(invocation, wish, rows)
    _say_what_wakes(wish, rows)
    attached = () if wish.is_trial else _attach(invocation, wish, rows)
    _finish(invocation, wish, rows, done, attached)


def _prepare(wish: Wish) -> Prepare:
    return Prepare(
        provider=wish.provider,
        session_id=wish.session,
        native_pid=wish.native_pid,
        native_remote=wish.native_remote,
        folder=str(wish.folder),
        is_account_wide=wish.scope is Scope.ACCOUNT,
    )


def _wants(at_prompt: bool, mid_turn: bool, no_wake: bool, usual: bool) -> Wants | None:
    """The wishes of this attach; None keeps the former ones, () is the usual."""
    said: Wants = (
        *(("at_prompt",) if at_prompt else ()),
        *(("mid_turn",) if mid_turn else ()),
        *(("no_wake",) if no_wake else ()),
    )
    return said if said or usual else None


def _set_up(
    invocation: Invocation, wish: Wish, rows: Sequence[SessionRow]
) -> tuple[SetUp, ...]:
    is_account = wish.scope is Scope.ACCOUNT
    return set_up(
        invocation,
        _account(wish, rows) if is_account else _projects(wish, rows),
        wish.is_agreed,
        wish.is_trial,
        is_mid_turn="mid_turn" in (wish.wants or ()),
        scope=wish.scope,
    )


# ---- which chats --------------------------------------------------------------------


def _chosen(wish: Wish, prepared: PrepareReply) -> tuple[SessionRow, ...]:
    """The sessions to attach; none where only the project is to be set up."""
    if wish.native_pid or wish.session:
        return (_named(wish, prepared.sessions),)
    if kept := _changed_by_name(wish, prepared.sessions):
        return kept
    free = [row for row in prepared.sessions if not row.attached_as]
    here = [row for row in free if _is_in(wish.folder, row)]
    if wish.is_trial or not free or (wish.is_agreed and len(here) < 2):
        # A yes is given in this folder: a chat of another one is chosen by hand.
        return tuple(here)
    lines = [_line(row, [each.provider for each in free]) for row in free]
    places = choose(
        "Which chat?", lines, may_take_all=not wish.name, otherwise=_no_chat(wish, free)
    )
    return tuple(free[place] for place in places if place < len(free))


def _changed_by_name(wish: Wish, found: Sequence[SessionRow]) -> tuple[SessionRow, ...]:
    """The chat that has this name already, where only its ways are to change."""
    is_change = wish.wants is not None or wish.native_remote or wish.tmux
    if not wish.name or not is_change:
        return ()
    return tuple(row for row in found if row.attached_as == wish.name)


def _no_chat(wish: Wish, free: Sequence[SessionRow]) -> str:
    """The last line of the list where every chat is of another folder."""
    if any(not row.folder or _is_in(wish.folder, row) for row in free):
        return ""
    return f"none of these: only set up {_shown(str(wish.folder))}"


def _line(row: SessionRow, providers: Sequence[str]) -> str:
    """One chat of the list, in columns: provider, where it works, which one it is."""
    width = max(map(len, providers))
    words = (row.provider.ljust(width), _shown(row.folder), row.session_id, row.note)
    return "  ".join(filter(None, words))


def _shown(folder: str) -> str:
    """The folder as people write it."""
    home = os.path.expanduser("~")
    return f"~{folder[len(home) :]}" if folder.startswith(f"{home}/") else folder


def _is_in(folder: Path, row: SessionRow) -> bool:
    return bool(row.folder) and os.path.realpath(row.folder) == os.path.realpath(folder)


def _named(wish: Wish, found: Sequence[SessionRow]) -> SessionRow:
    """The session by its id or process; the daemon verifies what we did not see."""
    for row in found:
        if wish.session in ("", row.session_id) and wish.native_pid in (0, row.pid):
            return row
    return SessionRow(_provider(wish), wish.session, wish.native_pid)


def _provider(wish: Wish) -> str:
    """The provider that was named, or the one that the named way leads to."""
    scheme = wish.native_remote.partition("://")[0]
    return wish.provider or remotes.PROVIDERS.get(scheme, "")


def _projects(wish: Wish, rows: Sequence[SessionRow]) -> list[tuple[str, Path]]:
    """Which provider is to be set up in which folder."""
    if rows:
        return [(row.provider, Path(row.folder or wish.folder)) for row in rows]
    if wish.provider == "script":
        raise Refused(
            "no_process",
            "A script is attached by its process, and none was named, so nothing was"
            " done.",
            "Name it: agentworks attach NAME --provider script --native-pid PID",
            exit_code=EXIT_USAGE,
        )
    if wish.provider and wish.provider not in PROGRAMS:
        raise Refused(
            "unknown_provider",
            f"AgentWorks knows no provider “{one_line(wish.provider)}”, so nothing was"
            " done.",
            f"Give one of: {_KNOWN}.",
            exit_code=EXIT_USAGE,
        )
    if wish.provider:
        return [(wish.provider, wish.folder)]
    present = [name for name, program in PROGRAMS.items() if shutil.which(program)]
    if not present:
        raise Refused(
            "no_provider",
            "No coding agent that AgentWorks knows is on PATH"
            f" ({', '.join(PROGRAMS.values())}), so nothing was set up.",
            "Name it: agentworks attach --provider claude",
        )
    return [(name, wish.folder) for name in present]


def _account(wish: Wish, rows: Sequence[SessionRow]) -> list[tuple[str, Path]]:
    """The one provider, or those of the chosen chats, each in the person's home."""
    named = [row.provider for row in rows] or list(filter(None, [wish.provider]))
    if not named:
        raise Refused(
            "no_provider",
            "What holds in all projects is chosen for one coding agent, and none was"
            " named, so nothing was done.",
            "Name it: agentworks attach --global --provider claude",
            exit_code=EXIT_USAGE,
        )
    home = home_of(os.environ)
    for name in named:
        if name not in PROGRAMS:
            raise Refused(
                "no_account_place",
                f"AgentWorks knows no place for hooks in all projects of"
                f" “{one_line(name)}”, so nothing was done.",
                f"Give one of: {', '.join(PROGRAMS)}.",
                exit_code=EXIT_USAGE,
            )
        require_usual_place(name, home, os.environ)
    return [(name, home) for name in named]


# ---- attaching -----------------------------------------------------------------------


def _own(invocation: Invocation, wish: Wish) -> tuple[AttachReply, ...]:
    request = Attach(
        name=wish.name,
        provider=wish.provider,
        session_id=wish.session,
        native_pid=wish.native_pid,
        native_remote=wish.native_remote,
        tmux_socket=_tmux_socket() if wish.tmux else "",
        tmux_pane=wish.tmux,
        wants=wish.wants,
        purpose=wish.purpose,
        folder=str(wish.folder),
    )
    if wish.is_trial:
        return ()
    return (invocation.ask_for(AttachReply, request, _ATTACH_S),)


def _tmux_socket() -> str:
    """The server of this terminal, or the person's usual one."""
    own = os.environ.get("TMUX", "").partition(",")[0]
    folder = os.environ.get("TMUX_TMPDIR", "") or "/tmp"  # noqa: S108 - tmux's own
    return own or os.path.realpath(f"{folder}/tmux-{os.getuid()}/default")


def _say_what_wakes(wish: Wish, rows: Sequence[SessionRow]) -> None:
    """Before anything is attached: what turns run under that messages start."""
    if "no_wake" in (wish.wants or ()):
        return
    for notice in dict.fromkeys(row.wake for row in rows if row.wake):
        click.echo(with_program(one_line(notice, limit=4000)), err=True)


def _attach(
    invocation: Invocation, wish: Wish, rows: Sequence[SessionRow]
) -> tuple[AttachReply, ...]:
    return tuple(
        invocation.ask_for(
            AttachReply,
            Attach(
                name=wish.name,
                provider=row.provider,
                session_id=row.session_id,
                native_pid=wish.native_pid,
                native_remote=wish.native_remote,
                tmux_socket=_tmux_socket() if wish.tmux else "",
                tmux_pane=wish.tmux,
                wants=wish.wants,
                purpose=wish.purpose,
                folder=row.folder or str(wish.folder),
                confirm=True,
            ),
            _ATTACH_S,
        )
        for row in rows
    )


def _finish(
    invocation: Invocation,
    wish: Wish,
    rows: Sequence[SessionRow],
    done: Sequence[SetUp],
    attached: Sequence[AttachReply],
) -> None:
    """Say what now holds, and what is left to do in the chat."""
    if invocation.as_json:
        document(msgspec.json.encode({"attached": attached, "set_up": done}))
        return
    for reply in attached:
        is_script = reply.provider == "script"
        client = shlex.quote(str(invocation.paths.bin / "ask")) if is_script else ""
        is_again = any(row.attached_as == reply.name for row in rows)
        say(texts.attached(reply.name, reply.route, is_again=is_again, client=client))
        for note in reply.notes:
            say(one_line(note))
    for each in done:
        for note in each.notes:
            advise(one_line(note))
    if attached:
        return
    if wish.is_trial:
        for row in rows:
            chat = f"{row.provider} {row.session_id} in {row.folder}"
            say(f"Would attach {one_line(chat)}")
        return
    for each in done:
        words = f"{chat_word(each.provider)} attach {wish.name}".strip()
        is_here = wish.scope is Scope.PROJECT
        seen = f"in {one_line(each.folder)}: start one there" if is_here else _ANYWHERE
        say(
            f"No unattached {each.provider} chat was seen {seen}, or type in an open"
            f" one: {words}"
        )
