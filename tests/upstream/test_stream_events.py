"""One event: read whole, or skipped; never an error."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from bridge.upstream.stream_events import Arrived, Skipped, read_event

NAMES = st.sampled_from(["message", "alive", "retract", "receipt", "attachment", "x"])
FIELDS = st.sampled_from(
    [
        "message_id",
        "sequence",
        "inbox_id",
        "conversation_id",
        "sender",
        "message",
        "sent_at",
        "through",
        "message_ids",
        "reason",
        "number",
        "delivery",
        "state",
    ]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=5,
)


@given(NAMES, st.text(max_size=20), st.text())
def test_any_text_is_read_or_skipped(event: str, event_id: str, text: str) -> None:
    read_event(event, event_id, text, 1.0)


@given(NAMES, st.integers(-5, 2**70), st.dictionaries(FIELDS, VALUES))
def test_any_object_is_read_or_skipped(
    event: str, event_id: int, content: dict[str, object]
) -> None:
    text = msgspec.json.encode(content).decode()
    read = read_event(event, str(event_id), text, 1.0)

    if isinstance(read, Arrived):
        assert read.message.sequence == event_id
    if isinstance(read, Skipped):
        assert 0 <= read.sequence < 10**16


def test_deeply_nested_text_is_skipped() -> None:
    deep = "[" * 100_000
    for text in (deep, f'{{"through":1,"future":{deep}'):
        assert isinstance(read_event("alive", "", text, 1.0), Skipped)
