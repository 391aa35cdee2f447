"""Why a Codex chat runs none of our hooks, by what its files say.

Owns the reading of trust in Codex's own configuration, which is never written.
Promises a guess and no more: only a hook that was heard proves that it runs.
"""

from __future__ import annotations

import os
import stat
import tomllib
from collections.abc import Mapping
from pathlib import Path

from bridge import assets
from bridge.core.standing import (
    FOLDER_NOT_TRUSTED,
    HOOKS_NOT_LOADED,
    NOT_TRUSTED,
    NOT_WRITTEN,
)
from bridge.errors import Refused
from bridge.providers import codex_install
from bridge.providers.scope import Scope

PROVIDER = "codex"
_LIMIT_BYTES = 1024 * 1024
# Without O_NONBLOCK a FIFO in the file's place would block for ever.
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC


def why_silent(folder: str, environment: Mapping[str, str], state_dir: Path) -> str:
    """In a few words; `environment` is the Codex process's own."""
    project = Path(folder)
    config = _config(environment)
    home = environment.get("HOME", "")
    # The person's own hooks run in folders that are not trusted too.
    if home.startswith("/") and _is_written(Path(home), state_dir, Scope.ACCOUNT):
        return _of_written(config, Path(home))
    if not _is_trusted(config, project):
        return FOLDER_NOT_TRUSTED
    is_written = _is_written(project, state_dir, Scope.PROJECT)
    if is_written is None:
        return HOOKS_NOT_LOADED
    return _of_written(config, project) if is_written else NOT_WRITTEN


def _of_written(config: Mapping[str, object], folder: Path) -> str:
    return HOOKS_NOT_LOADED if _has_trusted_hook(config, folder) else NOT_TRUSTED


def _is_written(folder: Path, state_dir: Path, scope: Scope) -> bool | None:
    """Are our hooks in its files? None where these cannot be read."""
    try:
        plugins = assets.folder("plugins")
        return not codex_install.plan(folder, state_dir, plugins, scope).changes
    except (Refused, FileNotFoundError):
        return None


def _config(environment: Mapping[str, str]) -> Mapping[str, object]:
    """Codex's configuration; an empty one where it cannot be read."""
    home = environment.get("HOME", "")
    place = environment.get("CODEX_HOME", "") or f"{home}/.codex"
    if not place.startswith("/"):
        return {}
    try:
        return tomllib.loads(_content(Path(place) / "config.toml").decode())
    except (OSError, ValueError, RecursionError):
        return {}


def _content(file: Path) -> bytes:
    """What is in a plain file, a link to one included; empty for anything else."""
    with os.fdopen(os.open(file, _FLAGS), "rb") as opened:
        if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
            return b""
        content = opened.read(_LIMIT_BYTES + 1)
    return content if len(content) <= _LIMIT_BYTES else b""


def _is_trusted(config: Mapping[str, object], project: Path) -> bool:
    """The folder or one above it; the nearest word counts."""
    projects = _table(config.get("projects"))
    for folder in (project, *project.parents):
        said = _table(projects.get(str(folder))).get("trust_level")
        if said is not None:
            return said == "trusted"
    return False


def _has_trusted_hook(config: Mapping[str, object], project: Path) -> bool:
    states = _table(_table(config.get("hooks")).get("state"))
    ours = f"{project / codex_install.HOOKS}:"
    return any(key.startswith(ours) for key in states)


def _table(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}
