"""The files that hosts read of us, made from their templates.

Owns the filling in of paths. Promises one stable line for each hook, which only
changes when the state folder does: a host un-trusts a line that changes. In a
template `@ASK@` is the hook client as one quoted word of a shell line, `@PIPE@`
the tool server's path, `@PLUGINS@` the folder of our packages, and `@BLOCK@` what
the command's hook prints when nobody answers, quoted too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from bridge.errors import EXIT_CONFIG, Refused
from bridge.providers import claude

_PLACE = re.compile("@(?:ASK|PIPE|PLUGINS|BLOCK)@")


def quoted(word: str) -> str:
    """The word for `sh`, in single quotes whatever is in it."""
    return "'" + word.replace("'", "'\\''") + "'"


def places(state_dir: Path) -> Mapping[str, str]:
    """What stands for what in a template, for this state folder.

    Raises Refused (exit 78) for a folder that a line of text cannot name.
    """
    text = str(state_dir)
    if not text.startswith("/") or not text.isprintable():
        raise Refused(
            "path_unusable",
            "The state folder's path is not absolute, or has characters that cannot be"
            " shown, so that no hook line can name it.",
            "Set AGENTWORKS_STATE to a folder with a plain name.",
            exit_code=EXIT_CONFIG,
        )
    return {
        "@ASK@": quoted(f"{text}/bin/ask"),
        "@PIPE@": f"{text}/bin/pipe",
        "@PLUGINS@": f"{text}/plugins",
        "@BLOCK@": quoted(claude.FALLBACK_BLOCK),
    }


def filled_document(template: str, words: Mapping[str, str]) -> str:
    """A JSON template with its texts filled in, laid out as ever."""
    document = filled(json.loads(template), words)
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"


def filled_package(
    source: Path, words: Mapping[str, str]
) -> Iterator[tuple[str, bytes]]:
    """Every file of a package by its name in it; its JSON and scripts are filled in."""
    for path in sorted(source.rglob("*")):
        if path.is_file():
            content = path.read_bytes()
            if path.suffix == ".json":
                content = filled_document(content.decode(), words).encode()
            elif path.suffix == ".js":
                content = _filled_script(content.decode(), words).encode()
            yield path.relative_to(source).as_posix(), content


def script(template: Path, state_dir: Path) -> str:
    """A template in JavaScript with its paths filled in, each as a literal."""
    return _filled_script(template.read_bytes().decode(), places(state_dir))


def _filled_script(text: str, words: Mapping[str, str]) -> str:
    literals = {place: json.dumps(path) for place, path in words.items()}
    return str(filled(text, literals))


def filled(value: object, words: Mapping[str, str]) -> object:
    """A JSON value with the texts in it filled in; names of members stay."""
    if isinstance(value, str):
        return _PLACE.sub(lambda match: words[match.group()], value)
    if isinstance(value, list):
        return [filled(each, words) for each in value]
    if isinstance(value, dict):
        return {name: filled(each, words) for name, each in value.items()}
    return value
