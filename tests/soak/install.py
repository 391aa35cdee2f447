"""The hook client for a soak: in C where there is a compiler, else its twin."""

from __future__ import annotations

from pathlib import Path

from tests.hooks.conftest import HOOKS, compile_ask, with_first_line


def install_ask(folder: Path) -> Path:
    """The program, in a folder of its own."""
    place = folder / "built"
    place.mkdir()
    compiled = compile_ask(place)
    if compiled is None:
        compiled = place / "ask"
        with_first_line(HOOKS / "ask.py", compiled)
    return compiled
