"""What can happen to a machine: each event belongs to one table, and keeps its time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from bridge.core import attachment, delivery, events, outbox, receipts
from bridge.core.events import (
    Admitted,
    Emitted,
    Event,
    LeaseRefused,
    NotEmitted,
    Processed,
    Unknown,
)

TABLES: list[dict[Any, Any]] = [
    attachment.TABLE,
    delivery.TABLE,
    outbox.TABLE,
    receipts.TABLE,
]


def kinds() -> Iterator[type[Event]]:
    for kind in Event.__subclasses__():
        if kind.__module__ == events.__name__:
            yield kind


KINDS = list(kinds())


def name_of(kind: type[Event]) -> str:
    return kind.__name__


@pytest.mark.parametrize("kind", KINDS, ids=name_of)
def test_every_event_belongs_to_exactly_one_table(kind: type[Event]) -> None:
    """In every one of its rows: what happens is never outside of the design."""
    rows = [[kind in row for row in table.values()] for table in TABLES]

    assert [any(found) for found in rows].count(True) == 1
    assert [all(found) for found in rows].count(True) == 1


def test_every_event_of_a_table_is_one_of_these() -> None:
    asked = {kind for table in TABLES for row in table.values() for kind in row}

    assert asked == set(KINDS)


@pytest.mark.parametrize("kind", KINDS, ids=name_of)
def test_an_event_carries_its_time_first_and_never_changes(kind: type[Event]) -> None:
    fields = msgspec.structs.fields(kind)
    made = kind(*(7.0 for _ in fields))

    assert (fields[0].name, fields[0].type, fields[0].required) == ("at", float, True)
    assert made.at == 7.0
    with pytest.raises(AttributeError, match="immutable"):
        made.at = 8.0  # type: ignore[misc]


def test_events_of_one_time_are_the_same_only_if_they_say_the_same() -> None:
    """A route's three answers carry alike facts and must not pass for each other."""
    answers = [Emitted(5.0), NotEmitted(5.0), Unknown(5.0)]

    assert [one == other for one in answers for other in answers].count(True) == 3
    assert NotEmitted(5.0) != NotEmitted(5.0, native=True)
    assert Emitted(5.0) == Emitted(5.0) != Emitted(6.0)


def test_what_is_not_said_is_the_careful_reading() -> None:
    """No reason, no native no, the agent's own word, and the lease it now has."""
    assert NotEmitted(5.0) == NotEmitted(5.0, "", native=False)
    assert (Admitted(5.0).evidence, Processed(5.0).evidence) == ("agent", "agent")
    assert LeaseRefused(5.0).attachment_id == ""
