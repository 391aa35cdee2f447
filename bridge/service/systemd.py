"""The bridge as a service of the person's systemd.

Owns the unit's text and `~/.config/systemd/user`. Promises that each word of the
plan comes out of systemd as it went in, whatever is in it, or is refused; and
that only a manager which reads our very file is told anything.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from bridge import assets
from bridge.errors import EXIT_CONFIG, BridgeError, Refused, Unavailable
from bridge.paths import Paths
from bridge.service.plan import Plan, Standing, ask, demand, user_name
from bridge.service.refusal import Supervisor

UNIT = "agentworks-bridge.service"

_SYSTEMCTL = ("systemctl", "--user", "--no-ask-password")
_LOOK_S = 3.0
# A stop waits for the bridge's own end, which has 20 s (TimeoutStopSec).
_STOP_S = 30.0
_COMMAND = re.compile(r"^ExecStart=(.*)$", re.MULTILINE)
_VARIABLE = re.compile(r'^Environment="(\w+)=(.*)"$', re.MULTILINE)
_WORD = re.compile(r'"((?:[^"\\]|\\.)*)"')
# What ends a line or drives a terminal, and what of a path is no text at all.
_UNWRITABLE = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")
_FACTS = "FragmentPath,ActiveState,SubState,UnitFileState,MainPID"


class Systemd:
    """See the module and plan.Service."""

    kind = Supervisor.SYSTEMD

    def __init__(self) -> None:
        config = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
        self.file = Path(config) / "systemd" / "user" / UNIT

    def answers(self) -> bool:
        """See plan.Service."""
        with suppress(Unavailable):
            shown = ask(*_SYSTEMCTL, "show-environment", within_s=_LOOK_S)
            return shown.returncode == 0
        return False

    def text(self, plan: Plan, paths: Paths) -> str:
        """See plan.Service."""
        shipped = (assets.folder("systemd") / UNIT).read_text("utf-8")
        program, *rest = plan.command
        words = [_program(program), *(_quoted(word, is_argument=True) for word in rest)]
        lines = [f"ExecStart={' '.join(words)}"]
        lines += [
            f"Environment={_quoted(f'{name}={value}')}"
            for name, value in sorted(plan.variables.items())
        ]
        return _COMMAND.sub(lambda _: "\n".join(lines), shipped, count=1)

    def plan(self) -> Plan | None:
        """See plan.Service."""
        try:
            text = self.file.read_text("utf-8")
        except (OSError, UnicodeError):
            return None
        return read_plan(text)

    def load(self) -> None:
        """See plan.Service; raises Refused where systemd reads other folders."""
        demand(*_SYSTEMCTL, "daemon-reload")
        if not self.standing().is_loaded:
            raise Refused(
                "other_manager",
                f"The systemd of this session does not read {self.file}, so it cannot"
                " run the bridge.",
                "Log in as yourself and try again, or use the bridge without a service:"
                " agentworks up",
            )
        demand(*_SYSTEMCTL, "enable", UNIT)

    def unload(self) -> None:
        """See plan.Service."""
        if self.standing().is_loaded:
            demand(*_SYSTEMCTL, "disable", "--now", UNIT, within_s=_STOP_S)
        self.file.unlink(missing_ok=True)
        ask(*_SYSTEMCTL, "daemon-reload")
        ask(*_SYSTEMCTL, "reset-failed", UNIT)

    def start(self) -> None:
        """See plan.Service."""
        ask(*_SYSTEMCTL, "reset-failed", UNIT)
        demand(*_SYSTEMCTL, "start", "--no-block", UNIT)

    def stop(self) -> None:
        """See plan.Service."""
        demand(*_SYSTEMCTL, "stop", UNIT, within_s=_STOP_S)

    def standing(self) -> Standing:
        """See plan.Service."""
        said = demand(*_SYSTEMCTL, "show", UNIT, f"--property={_FACTS}")
        facts = dict(line.partition("=")[::2] for line in said.splitlines())
        fragment = facts.get("FragmentPath", "")
        return Standing(
            is_loaded=bool(fragment) and _is_same(Path(fragment), self.file),
            is_enabled=facts.get("UnitFileState") == "enabled",
            is_failed=facts.get("ActiveState") == "failed"
            or facts.get("SubState") == "auto-restart",
            pid=int(facts.get("MainPID") or 0),
        )

    def log_command(self, lines: int, follow: bool) -> Sequence[str]:
        """See plan.Service."""
        command = ("journalctl", "--user", "--user-unit", UNIT, "--output=cat")
        ends = ("--no-pager", f"--lines={lines}", *(("--follow",) if follow else ()))
        return (*command, *ends)

    def logout_note(self) -> str:
        """See plan.Service."""
        with suppress(BridgeError):
            shown = ask(
                "loginctl", "show-user", user_name(), "--property=Linger", "--value"
            )
            if shown.stdout.strip() == "no":
                return (
                    "Your services end when you log out, and the bridge with them; to"
                    " keep them running: loginctl enable-linger"
                )
        return ""


def read_plan(text: str) -> Plan | None:
    """The plan that a unit of ours was made from; None for any other text."""
    command = _COMMAND.search(text)
    words = _WORD.findall(command[1]) if command else []
    if not words:
        return None
    program, *rest = words
    arguments = [_plain(word).replace("$$", "$") for word in rest]
    variables = {name: _plain(value) for name, value in _VARIABLE.findall(text)}
    return Plan((_plain(program), *arguments), variables)


def _program(path: str) -> str:
    # systemd looks for a variable in the rest of the line only, but hands the
    # program its own name with the variable replaced.
    if "$" in path:
        raise _unusable(path)
    return _quoted(path)


def _quoted(word: str, is_argument: bool = False) -> str:
    if _UNWRITABLE.search(word):
        raise _unusable(word)
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped.replace("$", "$$") if is_argument else escaped}"'


def _plain(quoted: str) -> str:
    return re.sub(r"\\(.)", r"\1", quoted).replace("%%", "%")


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False


def _unusable(word: str) -> Refused:
    return Refused(
        "not_for_a_unit",
        f"{word!r} cannot be written into a systemd unit.",
        "Choose a folder without special characters, or use the bridge without a"
        " service: agentworks up",
        exit_code=EXIT_CONFIG,
    )
