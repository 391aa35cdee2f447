"""JSON documents and texts to try edits on, of every layout."""

from __future__ import annotations

import json

from hypothesis import strategies as st

NAMES = st.text(max_size=6) | st.sampled_from(["hooks", "Stop", "enabledPlugins"])
PLAIN = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=6)
    | st.floats(allow_nan=False, allow_infinity=False)
)
VALUES = st.recursive(
    PLAIN,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3)
    ),
    max_leaves=8,
)
OBJECTS = st.dictionaries(NAMES, VALUES, max_size=4)
SPACE = st.text(alphabet=" \t\n\r", max_size=3)


@st.composite
def texts(draw: st.DrawFn, values: st.SearchStrategy[object] = VALUES) -> str:
    """A strict JSON text in one of the layouts that people and programs write."""
    value = draw(values)
    indent = draw(st.sampled_from([None, 0, 1, 2, 4, "\t", "free"]))
    if indent == "free":
        return draw(SPACE) + _free(draw, value) + draw(SPACE)
    separators = draw(st.sampled_from([(", ", ": "), (",", ":"), (" , ", " : ")]))
    text = json.dumps(
        value,
        ensure_ascii=draw(st.booleans()),
        indent=indent,
        separators=separators,
    )
    text += draw(st.sampled_from(["", "\n", "\n\n"]))
    return text.replace("\n", "\r\n") if draw(st.booleans()) else text


def _free(draw: st.DrawFn, value: object) -> str:
    """With any space wherever space may stand."""

    def spaced(text: str) -> str:
        return draw(SPACE) + text + draw(SPACE)

    if isinstance(value, dict):
        members = [
            f"{spaced(json.dumps(name))}:{spaced(_free(draw, each))}"
            for name, each in value.items()
        ]
        return "{" + (",".join(members) or draw(SPACE)) + "}"
    if isinstance(value, list):
        elements = [spaced(_free(draw, each)) for each in value]
        return "[" + (",".join(elements) or draw(SPACE)) + "]"
    return json.dumps(value)
