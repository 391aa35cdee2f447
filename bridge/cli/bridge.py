"""`bridge`: the background process itself."""

from __future__ import annotations

import time

import click
import msgspec

from bridge.cli import lifecycle
from bridge.cli.agents import listing
from bridge.cli.invocation import Invocation, verb
from bridge.cli.lazy import LazyGroup
from bridge.cli.present import advise, ago, document, say, state_styled, styled
from bridge.clock import SystemClock
from bridge.core.visible import one_line
from bridge.local.replies import HelloReply, StatusReply
from bridge.local.requests import Status

_WATCH_S = 2.0

bridge = LazyGroup(
    "bridge",
    {
        "start": f"{__name__}:start",
        "stop": f"{__name__}:stop",
        "restart": f"{__name__}:restart",
        "status": f"{__name__}:status",
        "run": f"{__name__}:run",
        "message": "bridge.cli.message:message",
    },
    "The background process, and chats' messages.",
)


@verb("run")
def run(invocation: Invocation) -> int:
    """Run the bridge in this terminal until it is stopped."""
    from bridge.daemon import run as run_daemon

    return run_daemon(invocation.paths, invocation.settings)


@verb("start")
def start(invocation: Invocation) -> None:
    """Start the bridge in the background."""
    answer, is_new = start_bridge(invocation)
    show_started(invocation, answer, is_new)


@verb("stop")
def stop(invocation: Invocation) -> None:
    """Stop the bridge; who is attached is kept."""
    pid = lifecycle.stop(invocation.paths, SystemClock())
    if invocation.as_json:
        document({"stopped": pid is not None, "pid": pid})
    elif pid is None:
        say("The bridge is not running.")
    else:
        advise(f"Stopped the bridge (pid {pid}). Start it again: agentworks up")


@verb("restart")
def restart(invocation: Invocation) -> None:
    """Stop the bridge, if it runs, and start it anew."""
    invocation.settings  # noqa: B018 - a wrong one must not end what runs
    lifecycle.stop(invocation.paths, SystemClock())
    answer, is_new = start_bridge(invocation)
    show_started(invocation, answer, is_new)


@verb("status")
@click.option("--watch", is_flag=True, help="Show it again and again.")
def status(invocation: Invocation, watch: bool) -> None:
    """Show whether the bridge runs, who is attached and what waits."""
    while True:
        answer = invocation.ask(Status())
        if watch and not invocation.as_json:
            click.clear()
        if invocation.as_json:
            document(answer)
        else:
            click.echo(overview(msgspec.json.decode(answer, type=StatusReply)))
        if not watch:
            return
        time.sleep(_WATCH_S)


def start_bridge(invocation: Invocation) -> tuple[HelloReply, bool]:
    """The running bridge and whether it is new; its settings are vetted first."""
    invocation.settings  # noqa: B018 - refused here, in words for the person
    arguments = []
    if invocation.config:
        arguments += ["--config", str(invocation.paths.config_file)]
    if invocation.server:
        arguments += ["--server", invocation.server]
    return lifecycle.start(invocation.paths, SystemClock(), arguments)


def show_started(invocation: Invocation, answer: HelloReply, is_new: bool) -> None:
    """Which bridge there is now."""
    if invocation.as_json:
        document(msgspec.json.encode(answer))
        return
    what = "The bridge is running" if is_new else "The bridge is already running"
    say(f"{what} (pid {answer.pid}, server: {one_line(answer.server)}).")


def overview(answer: StatusReply) -> str:
    """The bridge at a glance."""
    state = state_styled(one_line(answer.state), answer.state)
    lines = [
        f"{styled('bridge', bold=True)}  {state}, version {one_line(answer.version)},"
        f" pid {answer.pid}, up {ago(answer.uptime_s)}",
        f"{styled('server', bold=True)}  {one_line(answer.server)}",
    ]
    if answer.last_privileged:
        last = one_line(answer.last_privileged)
        lines.append(f"{styled('last command of yours', bold=True)}  {last}")
    lines += [
        styled(f"! {one_line(each)}", colour="yellow") for each in answer.warnings
    ]
    lines += ["", listing(answer.attachments)]
    if answer.waiting:
        lines += ["", *(one_line(each) for each in answer.waiting)]
    if answer.told:
        lines += ["", styled("told before", bold=True)]
        lines += [one_line(each) for each in answer.told]
    return "\n".join(lines)
