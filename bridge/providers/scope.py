"""How far an installation reaches, and whether the account-wide place is ours.

Owns where hosts look for what holds in all projects of a person. Promises that it
is only used where the host really looks there, below a home that is the person's
own.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

from bridge.errors import EXIT_CONFIG, Refused


class Scope(StrEnum):
    """In one project, or in all of the person's account.

    Installers take it beside a folder: the project's, or the person's home.
    """

    PROJECT = "project"
    ACCOUNT = "account"


# The variable that moves a host's own folder, and where that lies without it.
_MOVED_BY: Mapping[str, tuple[str, str]] = {
    "claude": ("CLAUDE_CONFIG_DIR", ".claude"),
    "codex": ("CODEX_HOME", ".codex"),
    "copilot": ("COPILOT_HOME", ".copilot"),
    "muse": ("XDG_CONFIG_HOME", ".config"),
    "opencode": ("XDG_CONFIG_HOME", ".config"),
    "pi": ("PI_CODING_AGENT_DIR", ".pi/agent"),
}


def home_of(environment: Mapping[str, str]) -> Path:
    """The person's home folder; raises Refused (exit 78) unless it is their own."""
    name = environment.get("HOME", "")
    if not name.startswith("/"):
        raise _no_home("HOME is not an absolute path")
    try:
        present = os.stat(name)
    except OSError as error:
        raise _no_home(f"HOME, {name}, cannot be used ({error.strerror})") from error
    if not stat.S_ISDIR(present.st_mode):
        raise _no_home(f"HOME, {name}, is no folder")
    if present.st_uid != os.geteuid():
        raise _no_home(f"HOME, {name}, belongs to another user")
    return Path(name)


def require_usual_place(
    provider: str, home: Path, environment: Mapping[str, str]
) -> None:
    """Raises Refused where the host looks for its own files elsewhere."""
    variable, usual = _MOVED_BY.get(provider, ("", ""))
    chosen = environment.get(variable, "") if variable else ""
    if not chosen or os.path.realpath(chosen) == os.path.realpath(home / usual):
        return
    raise Refused(
        "moved_away",
        f"{variable} makes {provider} look for its own files in another place than"
        f" {home / usual}, so nothing was written.",
        f"Set up one project instead, or unset {variable} and try again.",
    )


def _no_home(what: str) -> Refused:
    return Refused(
        "path_unusable",
        f"{what}, so it is not known where your files are.",
        "Set HOME to your own home folder and try again.",
        exit_code=EXIT_CONFIG,
    )
