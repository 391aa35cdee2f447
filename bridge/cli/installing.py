"""`bridge install`: the bridge as a service that starts with each login.

Promises that the person sees the whole file before it is written, that a file
which is not ours or serves another state folder is left alone, and that a bridge
which runs is handed over only when the manager has taken the file.
"""

from __future__ import annotations

import difflib
import os

import click

from bridge.cli import bridge as verbs
from bridge.cli import lifecycle, managed
from bridge.cli.asker import require_person
from bridge.cli.choosing import agree
from bridge.cli.invocation import Invocation, verb
from bridge.cli.present import with_program
from bridge.clock import SystemClock
from bridge.core.visible import visible
from bridge.errors import EXIT_CONFLICT, BridgeError, Refused
from bridge.local.replies import HelloReply
from bridge.paths import write_private_file
from bridge.service.found import manager
from bridge.service.plan import Service, planned


@verb("install")
@click.option("--yes", is_flag=True, help="Agree to what is shown.")
def install(invocation: Invocation, yes: bool) -> None:
    """Let systemd or launchd run the bridge, also after a login.

    The file that is written for it is shown, and asked for. Where neither of them
    answers, the bridge is started in the background and nothing is written.
    """
    require_person("the installation")
    invocation.settings  # noqa: B018 - refused here, in words for the person
    service = manager()
    if not service.answers():
        _in_background(invocation, service)
        return
    arguments = verbs.chosen_arguments(invocation)
    plan = planned(invocation.paths, service.kind, arguments, os.environ)
    text = service.text(plan, invocation.paths)
    before = _before(invocation, service)
    if text != before:
        _show_and_ask(service, before, text, yes)
        _write(invocation, service, before, text)
    answer, is_new = _handed_over(invocation, service, text != before)
    if note := service.logout_note():
        _note(note)
    verbs.show_started(invocation, answer, is_new)


def _in_background(invocation: Invocation, service: Service) -> None:
    answer, is_new = verbs.start_bridge(invocation)
    _note(
        f"No {service.kind} of yours answers here, so nothing was installed: the bridge"
        " runs in the background until it is stopped or the computer is restarted."
        " Then: agentworks up"
    )
    verbs.show_started(invocation, answer, is_new)


def _before(invocation: Invocation, service: Service) -> str:
    """What the file says now; raises Refused for one that is not ours to change."""
    if not os.path.lexists(service.file):
        return ""
    plan = service.plan()
    if plan is None or service.file.is_symlink():
        raise Refused(
            "unit_not_ours",
            f"{service.file} is not a file of ours, so nothing was written.",
            "Move it away, then: agentworks bridge install",
            exit_code=EXIT_CONFLICT,
        )
    if plan.state != invocation.paths.state:
        raise Refused(
            "other_state_folder",
            f"The service runs the bridge of another state folder, {plan.state}, so"
            " nothing was written.",
            f"Remove that one first: AGENTWORKS_STATE={plan.state} agentworks bridge"
            " uninstall",
            exit_code=EXIT_CONFLICT,
        )
    return service.file.read_text("utf-8")


def _show_and_ask(service: Service, before: str, text: str, is_agreed: bool) -> None:
    name = str(service.file)
    diff = difflib.unified_diff(
        before.splitlines(),
        text.splitlines(),
        name if before else "",
        name,
        lineterm="",
    )
    click.echo(f"Letting {service.kind} run the bridge:", err=True)
    click.echo(visible("\n".join(diff)), err=True)
    if not is_agreed and not agree("Write this?", "--yes"):
        raise Refused(
            "declined", "You said no, so nothing was written and nothing was started."
        )


def _write(invocation: Invocation, service: Service, before: str, text: str) -> None:
    """The file in its place and read by the manager, or as it was before."""
    invocation.paths.prepare()
    service.file.parent.mkdir(parents=True, exist_ok=True)
    write_private_file(service.file, text.encode())
    try:
        service.load()
    except BridgeError:
        if before:
            write_private_file(service.file, before.encode())
        else:
            service.file.unlink()
        raise


def _handed_over(
    invocation: Invocation, service: Service, is_changed: bool
) -> tuple[HelloReply, bool]:
    """The bridge that the manager runs, and whether it is a new one."""
    paths, clock = invocation.paths, SystemClock()
    running = lifecycle.running(paths)
    if running is not None and not is_changed and service.standing().pid == running.pid:
        return running, False
    managed.stop(paths, clock)
    return managed.start(paths, clock, service, ())


def _note(sentence: str) -> None:
    """For the person, beside the answer."""
    click.echo(visible(with_program(sentence)), err=True)
