"""JSON texts as people write them for lenient hosts, and a plain reading of them."""

from __future__ import annotations

import json

from hypothesis import strategies as st

from tests.providers.documents import OBJECTS, SPACE

_WORDS = st.text(alphabet='ab "{}[],:/\\*\t', max_size=6)


@st.composite
def loose_texts(draw: st.DrawFn) -> str:
    """An object with comments, trailing commas and a byte order mark here and there."""
    mark = draw(st.sampled_from(["", "", "\ufeff"]))
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    body = _value(draw, draw(OBJECTS))
    text = draw(_between()) + body + draw(_between())
    return mark + text.replace("\r", "").replace("\n", newline)


@st.composite
def _between(draw: st.DrawFn) -> str:
    """What may stand between two values: space and comments."""
    kind = draw(st.sampled_from(["space", "space", "line", "block"]))
    if kind == "space":
        return draw(SPACE)
    words = draw(_WORDS)
    if kind == "line":
        return f"{draw(SPACE)}//{words}\n{draw(SPACE)}"
    return f"{draw(SPACE)}/*{words.replace('*', '')}*/{draw(SPACE)}"


def _value(draw: st.DrawFn, value: object) -> str:
    if isinstance(value, dict):
        members = [
            f"{_around(draw, json.dumps(name))}:{_around(draw, _value(draw, each))}"
            for name, each in value.items()
        ]
        return "{" + _joined(draw, members) + "}"
    if isinstance(value, list):
        return (
            "[" + _joined(draw, [_around(draw, _value(draw, v)) for v in value]) + "]"
        )
    return json.dumps(value)


def _around(draw: st.DrawFn, text: str) -> str:
    return draw(_between()) + text + draw(_between())


def _joined(draw: st.DrawFn, parts: list[str]) -> str:
    if not parts:
        return draw(_between())
    trailing = draw(st.sampled_from(["", "", ","]))
    return ",".join(parts) + (trailing and trailing + draw(_between()))


def stripped(text: str) -> str:
    """Strict JSON of the same meaning, found letter by letter."""
    letters, place, is_quoted = [], 0, False
    text = text.removeprefix("\ufeff")
    while place < len(text):
        two = text[place : place + 2]
        if is_quoted and two.startswith("\\"):
            letters.append(two)
            place += 2
        elif not is_quoted and two == "//":
            place = _found(text, "\n", place)
        elif not is_quoted and two == "/*":
            place = _found(text, "*/", place + 2) + 2
        else:
            is_quoted ^= text[place] == '"'
            letters.append(text[place])
            place += 1
    return _without_trailing_commas("".join(letters))


def _found(text: str, what: str, place: int) -> int:
    end = text.find(what, place)
    return len(text) if end < 0 else end


def _without_trailing_commas(text: str) -> str:
    """Reads with the standard library and drops each comma that it stumbles over."""
    while True:
        try:
            json.loads(text)
        except json.JSONDecodeError as error:
            comma = text.rstrip(" \t\r\n").rfind(",", 0, error.pos + 1)
            follows = text[comma + 1 :].lstrip(" \t\r\n")[:1]
            if comma < 0 or follows not in ("}", "]"):
                raise
            text = text[:comma] + " " + text[comma + 1 :]
        else:
            return text
