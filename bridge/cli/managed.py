"""The bridge in the hands of a service manager, from the command line.

Promises that where a service is set up for this state folder and its manager
answers, `start` starts that and never a second process; that everything else
stays as it is without a manager; and that what is shown names who runs it.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from msgspec import Struct

from bridge.cli import lifecycle
from bridge.clock import Clock, rfc3339
from bridge.core.visible import one_line
from bridge.errors import EXIT_CONFIG, EXIT_CONFLICT, BridgeError, Refused, Unavailable
from bridge.local.replies import HelloReply
from bridge.paths import Paths
from bridge.service import refusal
from bridge.service.found import installed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bridge.service.plan import Service, Standing

_PAUSE_S = 0.05
_LOOK_EVERY_S = 1.0


class Facts(Struct, frozen=True):
    """Who runs the bridge.

    `kind` is systemd, launchd or none; `is_installed` when a service is set up for
    this state folder; `runs_it` when the bridge that answers is that service's.
    """

    kind: str = "none"
    is_installed: bool = False
    runs_it: bool = False
    is_enabled: bool = False
    file: str = ""
    refused: refusal.Refusal | None = None

    def line(self) -> str:
        """The same for a person."""
        if not self.is_installed:
            return "none: a background process, until it is stopped"
        if not self.runs_it:
            return (
                f"{self.kind}, but it does not run this bridge; to hand it over:"
                " agentworks bridge restart"
            )
        return self.kind + (", also after the next login" if self.is_enabled else "")

    def warning(self) -> str:
        """What the last start of the service was refused for."""
        if self.refused is None:
            return ""
        return (
            f"The service's start at {rfc3339(self.refused.at)} was refused:"
            f" {one_line(self.refused.message)}"
        )


def facts(paths: Paths, pid: int) -> Facts:
    """Who runs the bridge with this pid."""
    service = installed(paths)
    refused = refusal.kept(paths)
    if service is None:
        return Facts(refused=refused)
    standing = standing_of(service)
    return Facts(
        kind=str(service.kind),
        is_installed=True,
        runs_it=standing is not None and standing.pid == pid,
        is_enabled=standing is not None and standing.is_enabled,
        file=str(service.file),
        refused=refused,
    )


def standing_of(service: Service) -> Standing | None:
    """What the manager says; None when it does not answer."""
    try:
        return service.standing()
    except BridgeError:
        return None


def usable(paths: Paths) -> Service | None:
    """The service of this state folder, if its manager answers and knows it."""
    service = installed(paths)
    if service is None:
        return None
    standing = standing_of(service)
    can_load = service.kind is refusal.Supervisor.LAUNCHD and service.answers()
    known = standing is not None and (standing.is_loaded or can_load)
    return service if known else None


def start(
    paths: Paths, clock: Clock, service: Service, arguments: Sequence[str]
) -> tuple[HelloReply, bool]:
    """The running bridge, and whether this call had it started by the manager.

    Raises Refused for options that the service was not set up with, Unavailable
    (75) when nothing answers in time, or why the bridge would not start.
    """
    _require_same(service, arguments)
    try:
        running = lifecycle.hello(paths)
    except Unavailable as error:
        if error.code != "bridge_not_running":
            raise
    else:
        if running.state != "stopping":
            return running, False
    refusal.forget(paths)
    service.start()
    return _until_answering(paths, clock, service), True


def explained(paths: Paths, not_running: Unavailable) -> Unavailable:
    """Why nobody answers, where a service should be running."""
    service = usable(paths)
    standing = None if service is None else standing_of(service)
    if service is None or standing is None or not standing.is_failed:
        return not_running
    return Unavailable(
        "service_failed",
        f"The AgentWorks bridge is not running: {service.kind} has it as a service"
        " that failed, so nothing was done.",
        "Its log says why: agentworks bridge logs. To try again: agentworks up",
    )


def _require_same(service: Service, arguments: Sequence[str]) -> None:
    plan = service.plan()
    missing = [] if plan is None else [w for w in arguments if w not in plan.command]
    if missing:
        raise Refused(
            "other_settings",
            f"The bridge is set up as a service of {service.kind}, which has its own"
            " settings, so nothing was started with these.",
            "Set it up anew with them: agentworks bridge install"
            f" {' '.join(map(one_line, arguments))}",
            exit_code=EXIT_CONFLICT,
        )


def _until_answering(paths: Paths, clock: Clock, service: Service) -> HelloReply:
    by = clock.running() + lifecycle.START_S
    look_at = clock.running() + _LOOK_EVERY_S
    while clock.running() < by:
        running = lifecycle.running(paths)
        if running is not None:
            return running
        _require_no_refusal(paths)
        if clock.running() >= look_at:
            look_at = clock.running() + _LOOK_EVERY_S
            if service.standing().is_failed:
                _require_no_refusal(paths)
                raise Refused(
                    "start_failed",
                    f"{service.kind} could not keep the bridge running.",
                    "Its log says why: agentworks bridge logs",
                )
        time.sleep(_PAUSE_S)
    raise Unavailable(
        "start_timeout",
        f"{service.kind} was told to start the bridge, which does not answer yet.",
        "Its log says why: agentworks bridge logs",
    )


def _require_no_refusal(paths: Paths) -> None:
    reason = refusal.kept(paths)
    if reason is None:
        return
    raise Refused(
        reason.code,
        reason.message,
        reason.hint,
        exit_code=EXIT_CONFIG,
    )


def stop(paths: Paths, clock: Clock) -> int | None:
    """Stop the bridge, whoever runs it, and wait; its pid, None without one.

    The daemon is asked first: it knows who may stop it. Raises as lifecycle.stop.
    """
    pid = lifecycle.stop(paths, clock)
    service = usable(paths)
    if service is not None:  # or one that just failed would be started again
        service.stop()
    return pid
