"""A child's tokens: whole or not at all, and never in a text for people."""

from __future__ import annotations

import traceback
from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.core.tokens import ChildTokens

TOKENS = ChildTokens("connection-1", "cnry-access", "cnry-refresh", 1_790_003_600.5)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
ANY_TOKENS = st.builds(
    ChildTokens,
    *(3 * [TEXT]),
    expires_at=st.floats(allow_nan=False, allow_infinity=False),
)


@given(ANY_TOKENS)
def test_tokens_are_read_as_they_were_written(tokens: ChildTokens) -> None:
    written = msgspec.json.encode(tokens)

    assert msgspec.json.decode(written, type=ChildTokens) == tokens


@pytest.mark.parametrize("form", [repr, str, "{}".format, lambda one: repr([one])])
def test_no_text_for_people_has_a_token(form: Callable[[object], str]) -> None:
    text = form(TOKENS)

    assert "cnry" not in text
    assert "connection_id='connection-1', expires_at=1790003600.5" in text


def test_a_traceback_that_shows_its_variables_has_no_token() -> None:
    def refresh(tokens: ChildTokens) -> float:
        return tokens.expires_at / 0

    with pytest.raises(ZeroDivisionError) as caught:
        refresh(TOKENS)
    found = traceback.TracebackException.from_exception(
        caught.value, capture_locals=True
    )
    text = "".join(found.format())

    assert "tokens = ChildTokens(connection_id='connection-1'" in text
    assert "cnry" not in text


@pytest.mark.parametrize("name", ChildTokens.__struct_fields__)
def test_tokens_with_a_part_missing_are_none(name: str) -> None:
    parts = msgspec.structs.asdict(TOKENS)
    del parts[name]

    with pytest.raises(msgspec.ValidationError, match=f"missing.*{name}") as caught:
        msgspec.convert(parts, ChildTokens)
    assert "cnry" not in str(caught.value)


def test_tokens_with_a_part_that_we_never_wrote_are_none() -> None:
    parts = {**msgspec.structs.asdict(TOKENS), "scope": "cnry-more"}

    with pytest.raises(msgspec.ValidationError, match="scope") as caught:
        msgspec.convert(parts, ChildTokens)
    assert "cnry" not in str(caught.value)


def test_tokens_are_replaced_and_never_changed() -> None:
    with pytest.raises(AttributeError, match="immutable"):
        TOKENS.access_token = "other"  # type: ignore[misc]
