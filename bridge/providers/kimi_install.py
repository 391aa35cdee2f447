"""Setting up for Kimi Code, which has no hooks in projects.

Its hooks stand in the person's own config.toml, for every project. Promises that
this file is never written: the person is shown what to put there.
"""

from __future__ import annotations

import json
from pathlib import Path

from bridge.providers import templates
from bridge.providers.project_file import Plan
from bridge.providers.scope import Scope

_SENTENCE = (
    "Kimi Code reads hooks only from your own config.toml, for all your projects, so "
    "nothing was written. If you want that, put these lines at its end:"
)


def plan(
    project: Path,
    state_dir: Path,
    templates_dir: Path,
    scope: Scope = Scope.PROJECT,
) -> Plan:
    """No change anywhere, and as notes the lines that the person may put in.

    `templates_dir` is packaging/plugins.
    """
    return Plan(notes=(_SENTENCE, *_lines(state_dir, templates_dir)))


def removal(
    project: Path,
    state_dir: Path,
    templates_dir: Path,
    scope: Scope = Scope.PROJECT,
) -> Plan:
    """No change; a note with the lines that the person may take out."""
    return Plan(
        notes=(
            "Kimi Code's hooks stand in your own config.toml: take out the [[hooks]] "
            "tables there whose command names `hook kimi`.",
        )
    )


def _lines(state_dir: Path, templates_dir: Path) -> list[str]:
    ask = templates.places(state_dir)["@ASK@"]
    template = (templates_dir / "kimi" / "hooks.toml").read_bytes().decode()
    # Inside of a TOML text in double quotes.
    quoted = json.dumps(ask, ensure_ascii=False)[1:-1]
    return [line.replace("@ASK@", quoted) for line in template.splitlines() if line]
