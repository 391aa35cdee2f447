"""What the hosts really said, captured once and kept with made-up ids."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bridge.core.caller import ProcessFacts

FOLDER = Path(__file__).parent / "fixtures"


def captured(name: str) -> dict[str, Any]:
    """The JSON object in fixtures/NAME.json."""
    document: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text())
    return document


def stdin(name: str, **changes: object) -> bytes:
    """A hook's stdin as captured, with some fields changed (None takes one out)."""
    said = captured(name) | changes
    return json.dumps(
        {field: value for field, value in said.items() if value is not None}
    ).encode()


def event_word(name: str) -> str:
    """The host's own name of the captured event."""
    return str(captured(name)["hook_event_name"])


def process(
    program: str, *arguments: str, name: str = "", pid: int = 10
) -> ProcessFacts:
    """A process with this program and command line; its name is the program's."""
    return ProcessFacts(
        pid=pid,
        parent_pid=1,
        start=1000,
        name=name or program.rpartition("/")[2][:15],
        uid=1000,
        program=program,
        arguments=arguments or (program,),
    )
