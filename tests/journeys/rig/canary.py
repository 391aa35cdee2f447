"""Words that must show up nowhere but where messages and tokens belong.

Every message that goes through the rig carries `BODY`, and every token that lies
in the computer's folders is known here. Promises that `look` finds either of them
in any log, output, command line, environment or other file of the computer.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from bridge.paths import Paths

BODY = "cnry-quillwort"
_LINE = f"\n{BODY}"
# What is longer is a test of the limit itself, and what is empty of the refusal.
_LONGEST = 19_900


def marked(said: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a call, with the canary in its message."""
    text = said.get("message")
    if isinstance(text, str) and text.strip() and len(text) <= _LONGEST:
        return {**said, "message": text + _LINE}
    return said


def unmarked(answer: Any) -> Any:
    """The answer as if the canary had not been there."""
    if isinstance(answer, str):
        return answer.removesuffix(_LINE)
    if isinstance(answer, dict):
        return {key: unmarked(value) for key, value in answer.items()}
    if isinstance(answer, list):
        return [unmarked(each) for each in answer]
    return answer


class Canaries:
    """What must not be found on one computer."""

    def __init__(self, paths: Paths, folder: Path) -> None:
        self.tokens: set[str] = set()
        self._paths = paths
        self._folder = folder

    def learn(self) -> None:
        """Remember every token that lies there now."""
        files = [self._paths.parent_token, *self._paths.leases.glob("*.json")]
        for file in files:
            with suppress(FileNotFoundError):  # a lease that has just ended
                self._learn_from(json.loads(file.read_text() or "{}"))

    def _learn_from(self, content: dict[str, Any]) -> None:
        for key, value in content.items():
            if key.endswith("token") and isinstance(value, str) and value:
                self.tokens.add(value)

    def look(self) -> list[str]:
        """Where one of them was found, and should not be."""
        self.learn()
        wrong = [*self._in_files(), *self._in_processes()]
        return [f"{what} in {place}" for place, what in wrong]

    def _in_files(self) -> Iterator[tuple[str, str]]:
        for place in sorted(self._folder.rglob("*")):
            if not place.is_file() or place.is_symlink():
                continue
            try:
                content = place.read_bytes()
            except FileNotFoundError:
                continue  # a database's log, which has just gone
            for what in self._found(content):
                if not self._belongs(place, what):
                    yield str(place), what

    def _belongs(self, place: Path, what: str) -> bool:
        keeps_tokens = place == self._paths.parent_token or (
            place.parent == self._paths.leases
        )
        keeps_bodies = place.name.startswith(("journal.sqlite3", "server.sqlite3"))
        return keeps_bodies if what == "a body" else keeps_tokens

    def _in_processes(self) -> Iterator[tuple[str, str]]:
        """Of every process that was started with this computer's home."""
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                variables = (folder / "environ").read_bytes()
                words = (folder / "cmdline").read_bytes()
            except OSError:
                continue  # gone, or of a person who is not us
            if os.fsencode(self._folder) in variables:
                for what in self._found(variables + words):
                    yield f"{folder}: {words!r}", what

    def _found(self, content: bytes) -> Iterator[str]:
        if BODY.encode() in content:
            yield "a body"
        if any(token.encode() in content for token in self.tokens):
            yield "a token"
