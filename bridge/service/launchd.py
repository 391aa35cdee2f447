"""The bridge as a launch agent of the person's launchd (macOS).

Owns the plist's content and `~/Library/LaunchAgents`. Promises that whatever is
in it is as it was planned, and that the log file is private before launchd opens
it.
"""

from __future__ import annotations

import os
import plistlib
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from xml.parsers.expat import ExpatError

from bridge import assets
from bridge.errors import EXIT_CONFIG, Refused, Unavailable
from bridge.log import open_log_file
from bridge.paths import Paths
from bridge.service.plan import Plan, Standing, ask, demand, user_name
from bridge.service.refusal import Supervisor

LABEL = "works.agent.bridge"

_LOOK_S = 3.0
_STOP_S = 30.0
_PID = re.compile(r"^\s*pid = (\d+)$", re.MULTILINE)
_PATH = re.compile(r"^\s*path = (.*)$", re.MULTILINE)


class Launchd:
    """See the module and plan.Service."""

    kind = Supervisor.LAUNCHD

    def __init__(self) -> None:
        agents = Path(os.path.expanduser("~/Library/LaunchAgents"))
        self.file = agents / f"{LABEL}.plist"
        self._domain = f"gui/{user_name()}"
        self._job = f"{self._domain}/{LABEL}"

    def answers(self) -> bool:
        """See plan.Service."""
        with suppress(Unavailable):
            shown = ask("launchctl", "print", self._domain, within_s=_LOOK_S)
            return shown.returncode == 0
        return False

    def text(self, plan: Plan, paths: Paths) -> str:
        """See plan.Service."""
        shipped = (assets.folder("launchd") / self.file.name).read_bytes()
        content: dict[str, Any] = plistlib.loads(shipped)
        log = str(paths.log / "bridge.log")
        content |= {
            "ProgramArguments": list(plan.command),
            "EnvironmentVariables": dict(sorted(plan.variables.items())),
            "StandardOutPath": log,
            "StandardErrorPath": log,
        }
        return _written(content)

    def plan(self) -> Plan | None:
        """See plan.Service."""
        try:
            content = plistlib.loads(self.file.read_bytes())
            words = tuple(map(str, content["ProgramArguments"]))
            found = content["EnvironmentVariables"]
            return Plan(words, {str(key): str(value) for key, value in found.items()})
        except Exception:  # any other file is just not ours
            return None

    def load(self) -> None:
        """See plan.Service."""
        plan = self.plan()
        if plan is not None:
            open_log_file(plan.state / "log" / "bridge.log").close()
        demand("launchctl", "enable", self._job)

    def unload(self) -> None:
        """See plan.Service."""
        self.stop()
        self.file.unlink(missing_ok=True)

    def start(self) -> None:
        """See plan.Service."""
        if self.standing().is_loaded:
            demand("launchctl", "kickstart", self._job)
        else:  # as its file says, it runs as soon as it is read
            demand("launchctl", "bootstrap", self._domain, str(self.file))

    def stop(self) -> None:
        """See plan.Service."""
        if self.standing().is_loaded:
            demand("launchctl", "bootout", self._job, within_s=_STOP_S)

    def standing(self) -> Standing:
        """See plan.Service; launchd gives nothing up."""
        shown = ask("launchctl", "print", self._job)
        if shown.returncode != 0:
            return Standing(is_enabled=self.file.exists())
        path, pid = _PATH.search(shown.stdout), _PID.search(shown.stdout)
        return Standing(
            is_loaded=path is not None and Path(path[1]) == self.file,
            is_enabled=True,
            pid=int(pid[1]) if pid is not None else 0,
        )

    def log_command(self, lines: int, follow: bool) -> Sequence[str]:
        """See plan.Service."""
        return ()

    def logout_note(self) -> str:
        """See plan.Service."""
        return ""


def _written(content: dict[str, Any]) -> str:
    """The plist's XML; raises Refused for what would not come out as it went in."""
    try:
        written = plistlib.dumps(content, sort_keys=False)
        if plistlib.loads(written) == content:
            return written.decode()
    except (ValueError, ExpatError):  # no text, or none that XML can hold
        pass
    raise Refused(
        "not_for_a_plist",
        "A folder or variable that the bridge needs has characters that cannot be"
        " written into a launchd plist.",
        "Choose a folder without special characters, or use the bridge without a"
        " service: agentworks up",
        exit_code=EXIT_CONFIG,
    )
