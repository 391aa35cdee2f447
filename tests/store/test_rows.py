"""Records and rows: what was written is what is read."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import DecodeError, Struct

from bridge.store import opening
from bridge.store.attachments import ATTACHMENTS
from bridge.store.deliveries import DELIVERIES
from bridge.store.offers import OFFERS
from bridge.store.receipts import RECEIPTS
from bridge.store.rows import Table, ids_to_text, text_to_ids
from bridge.store.submissions import SUBMISSIONS
from tests.store import examples

TABLES: list[Table[Any]] = [ATTACHMENTS, DELIVERIES, OFFERS, RECEIPTS, SUBMISSIONS]
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


class Colour(StrEnum):
    """Two words that a column can hold."""

    RED = "red"
    GREEN = "green"


class Note(Struct, frozen=True):
    """A record with every kind of field that the store's records have."""

    note_id: str
    page: int
    ids: tuple[str, ...] = ()
    colour: Colour = Colour.RED
    is_shown: bool = False
    body: str | None = None
    at: float = 0.0
    highest: int = 0


def notes() -> Table[Note]:
    return Table(
        "note",
        Note,
        ("note_id", "page"),
        into={"ids": ids_to_text},
        back={"ids": text_to_ids, "colour": Colour, "is_shown": bool},
        kept={"highest": "max(note.highest, excluded.highest)"},
    )


ANY_NOTE = st.builds(
    Note,
    TEXT,
    st.integers(-(2**63), 2**63 - 1),
    st.lists(TEXT, max_size=4).map(tuple),
    st.sampled_from(Colour),
    st.booleans(),
    st.none() | TEXT,
    st.floats(allow_nan=False),
    st.integers(0, 2**63 - 1),
)


@pytest.fixture(scope="module")
def connection() -> Iterator[sqlite3.Connection]:
    """Memory holds a table of notes, and the journal's tables."""
    opened = sqlite3.connect(":memory:", isolation_level=None)
    schema = Path(opening.__file__).with_name("schema.sql").read_text()
    opened.executescript(
        f"{schema} CREATE TABLE note (at REAL, body TEXT, colour TEXT, highest INTEGER,"
        " ids TEXT, is_shown INTEGER, note_id TEXT, page INTEGER,"
        " UNIQUE (note_id, page)) STRICT;"
    )
    ATTACHMENTS.save(opened, examples.attachment())
    yield opened
    opened.close()


@pytest.fixture(autouse=True)
def no_rows(connection: sqlite3.Connection) -> None:
    connection.execute("DELETE FROM note")
    connection.execute("DELETE FROM delivery")


# ---- several ids in one column ---------------------------------------------------


@given(st.lists(TEXT, max_size=5).map(tuple))
def test_ids_are_read_as_they_were_written(ids: tuple[str, ...]) -> None:
    assert text_to_ids(ids_to_text(ids)) == ids


@given(st.lists(TEXT, max_size=5))
def test_the_column_is_a_json_list_that_any_program_reads(ids: list[str]) -> None:
    assert json.loads(ids_to_text(ids)) == ids


@pytest.mark.parametrize("text", ["", "msg-1", "null", "{}", "[1]", '["a"', '"a"'])
def test_a_column_that_holds_something_else_is_not_guessed_at(text: str) -> None:
    with pytest.raises(DecodeError):
        text_to_ids(text)


# ---- one table -------------------------------------------------------------------


@given(ANY_NOTE)
def test_a_record_is_read_as_it_was_written(
    connection: sqlite3.Connection, note: Note
) -> None:
    """The columns of the table may stand in any order."""
    connection.execute("DELETE FROM note")
    notes().save(connection, note)

    [found] = notes().read(connection)
    assert found == note
    assert type(found.colour) is Colour
    assert type(found.is_shown) is bool
    assert type(found.ids) is tuple


@given(st.lists(ANY_NOTE, max_size=5, unique_by=lambda note: (note.note_id, note.page)))
def test_many_records_are_read_as_they_were_written(
    connection: sqlite3.Connection, several: list[Note]
) -> None:
    connection.execute("DELETE FROM note")
    notes().save_all(connection, several)

    assert notes().read(connection, "ORDER BY rowid") == several


def test_saving_again_overwrites_the_row_with_the_same_key(
    connection: sqlite3.Connection,
) -> None:
    for note in (Note("a", 1, body="first"), Note("a", 1), Note("a", 2, body="other")):
        notes().save(connection, note)

    assert notes().read(connection, "ORDER BY page") == [
        Note("a", 1),
        Note("a", 2, body="other"),
    ]


@given(st.lists(st.integers(0, 2**62), min_size=1, max_size=5))
def test_a_kept_column_is_overwritten_as_its_table_says(
    connection: sqlite3.Connection, values: list[int]
) -> None:
    connection.execute("DELETE FROM note")
    for value in values:
        notes().save(connection, Note("a", 1, highest=value, at=float(value)))

    [found] = notes().read(connection)
    assert found.highest == max(values)
    assert found.at == float(values[-1])


def test_a_read_picks_and_orders_as_it_is_asked(connection: sqlite3.Connection) -> None:
    for page in (2, 1, 3):
        notes().save(connection, Note("a", page))
    read = notes().read(connection, "WHERE page < ? ORDER BY page", (3,))

    assert [note.page for note in read] == [1, 2]
    assert notes().read_one(connection, "ORDER BY page", ()) == Note("a", 1)
    assert notes().read_one(connection, "WHERE page = ?", (9,)) is None


def test_a_table_without_conversions_needs_none(connection: sqlite3.Connection) -> None:
    class Plain(Struct, frozen=True):
        note_id: str
        page: int
        body: str

    table = Table("note", Plain, ("note_id", "page"))
    table.save(connection, Plain("a", 7, "plain"))

    assert table.read(connection) == [Plain("a", 7, "plain")]


def test_text_that_is_no_unicode_is_not_saved(connection: sqlite3.Connection) -> None:
    with pytest.raises(UnicodeEncodeError):
        notes().save(connection, Note("a", 1, body="\ud800"))
    assert notes().read(connection) == []


def test_a_number_past_64_bits_is_not_saved_as_another(
    connection: sqlite3.Connection,
) -> None:
    with pytest.raises(OverflowError):
        notes().save(connection, Note("a", 2**63))
    assert notes().read(connection) == []


# ---- the journal's tables --------------------------------------------------------


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_a_table_has_exactly_its_records_fields(
    connection: sqlite3.Connection, table: Table[Any]
) -> None:
    found = connection.execute(f"PRAGMA table_info({table.name})").fetchall()

    assert tuple(row[1] for row in found if row[1] != "number") == tuple(
        column for column in table.columns if column != "number"
    )


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_every_table_is_strict_about_its_types(
    connection: sqlite3.Connection, table: Table[Any]
) -> None:
    """A wrong type is refused when it is written, not found when it is read."""
    [row] = connection.execute(f"PRAGMA table_list({table.name})").fetchall()

    assert row[5] == 1
