"""`bridge`: the background process itself."""

from __future__ import annotations

import os
import time

import click
import msgspec

from bridge.cli import lifecycle
from bridge.cli.agents import listing
from bridge.cli.invocation import Invocation, verb
from bridge.cli.lazy import LazyGroup
from bridge.cli.present import (
    advise,
    ago,
    document,
    say,
    state_styled,
    styled,
    with_program,
)
from bridge.clock import SystemClock
from bridge.core.visible import one_line
from bridge.local.replies import HelloReply, StatusReply
from bridge.local.requests import Status
from bridge.service.refusal import Supervisor, supervised

_WATCH_S = 2.0

bridge = LazyGroup(
    "bridge",
    {
        "start": f"{__name__}:start",
        "stop": f"{__name__}:stop",
        "restart": f"{__name__}:restart",
        "status": f"{__name__}:status",
        "logs": "bridge.cli.logs:logs",
        "install": "bridge.cli.installing:install",
        "uninstall": "bridge.cli.uninstalling:uninstall",
        "run": f"{__name__}:run",
        "message": "bridge.cli.message:message",
    },
    "The background process, and chats' messages.",
)


@verb("run")
@click.option(
    "--supervised-by",
    type=click.Choice([each.value for each in Supervisor]),
    hidden=True,
)
def run(invocation: Invocation, supervised_by: str | None) -> int:
    """Run the bridge in this terminal until it is stopped."""
    from bridge.service.notify import Notifier

    # First of all: nothing that is started here may speak for the bridge.
    notifier = Notifier.take(os.environ)

    def serve() -> int:
        from bridge.daemon import run as run_daemon

        return run_daemon(invocation.paths, invocation.settings, notifier)

    def prepare_and_serve() -> int:
        from bridge.service.programs import install_programs

        invocation.paths.prepare()
        install_programs(invocation.paths)
        return serve()

    if supervised_by is None:
        return serve()
    return supervised(
        invocation.paths, Supervisor(supervised_by), SystemClock(), prepare_and_serve
    )


@verb("start")
def start(invocation: Invocation) -> None:
    """Start the bridge.

    A service that is set up for it is started, else a process in the background.
    """
    answer, is_new = start_bridge(invocation)
    show_started(invocation, answer, is_new)


@verb("stop")
def stop(invocation: Invocation) -> None:
    """Stop the bridge; who is attached is kept.

    A service starts again with the next login, or by: agentworks bridge start
    """
    from bridge.cli import managed

    pid = managed.stop(invocation.paths, SystemClock())
    if invocation.as_json:
        document({"stopped": pid is not None, "pid": pid})
    elif pid is None:
        say("The bridge is not running.")
    else:
        advise(f"Stopped the bridge (pid {pid}). Start it again: agentworks up")


@verb("restart")
def restart(invocation: Invocation) -> None:
    """Stop the bridge, if it runs, and start it anew."""
    from bridge.cli import managed

    invocation.settings  # noqa: B018 - a wrong one must not end what runs
    managed.stop(invocation.paths, SystemClock())
    answer, is_new = start_bridge(invocation)
    show_started(invocation, answer, is_new)


@verb("status")
@click.option("--watch", is_flag=True, help="Show it again and again.")
def status(invocation: Invocation, watch: bool) -> None:
    """Show whether the bridge runs, who is attached and what waits."""
    from bridge.cli import managed

    while True:
        answer = invocation.ask(Status())
        reply = msgspec.json.decode(answer, type=StatusReply)
        facts = managed.facts(invocation.paths, reply.pid)
        if watch and not invocation.as_json:
            click.clear()
        if invocation.as_json:
            service = msgspec.to_builtins(facts)
            document({**msgspec.json.decode(answer), "service": service})
        else:
            warnings = (*reply.warnings, *filter(None, [facts.warning()]))
            shown = msgspec.structs.replace(reply, warnings=warnings)
            click.echo(overview(shown, facts.line()))
        if not watch:
            return
        time.sleep(_WATCH_S)


def start_bridge(invocation: Invocation) -> tuple[HelloReply, bool]:
    """The running bridge and whether it is new; its settings are vetted first.

    Raises Refused (exit 4) where another server was chosen than a running one has.
    """
    invocation.settings  # noqa: B018 - refused here, in words for the person
    arguments = chosen_arguments(invocation)
    from bridge.cli import managed

    service = managed.usable(invocation.paths)
    if service is not None:
        return managed.start(invocation.paths, SystemClock(), service, arguments)
    answer, is_new = lifecycle.start(invocation.paths, SystemClock(), arguments)
    if not is_new:
        invocation.require_server(answer.server)
    return answer, is_new


def chosen_arguments(invocation: Invocation) -> list[str]:
    """What this command line chose for the bridge, as one of its own."""
    arguments = []
    if invocation.config:
        arguments += ["--config", str(invocation.paths.config_file)]
    if invocation.server:
        arguments += ["--server", invocation.server]
    return arguments


def show_started(invocation: Invocation, answer: HelloReply, is_new: bool) -> None:
    """Which bridge there is now, and who runs it."""
    from bridge.cli import managed

    facts = managed.facts(invocation.paths, answer.pid)
    if invocation.as_json:
        service = msgspec.to_builtins(facts)
        document({**msgspec.to_builtins(answer), "service": service})
        return
    what = "The bridge is running" if is_new else "The bridge is already running"
    advise(
        f"{what} (pid {answer.pid}, server: {one_line(answer.server)},"
        f" service: {facts.line()})."
    )


def overview(answer: StatusReply, service: str = "") -> str:
    """The bridge at a glance; `service` says who runs it."""
    state = state_styled(one_line(answer.state), answer.state)
    lines = [
        f"{styled('bridge', bold=True)}  {state}, version {one_line(answer.version)},"
        f" pid {answer.pid}, up {ago(answer.uptime_s)}",
        f"{styled('server', bold=True)}  {one_line(answer.server)}",
    ]
    if service:
        lines.append(f"{styled('service', bold=True)}  {with_program(service)}")
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
