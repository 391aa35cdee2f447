"""How a frozen record becomes a row and comes back.

Promises that a row holds exactly the record's fields, in the record's order,
and that what was written is what is read.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import msgspec
from msgspec.structs import astuple

Record = TypeVar("Record", bound=msgspec.Struct)
Convert = Callable[[Any], Any]


def ids_to_text(ids: Sequence[str]) -> str:
    """Several ids in one column, as a JSON list."""
    return msgspec.json.encode(ids).decode()


def text_to_ids(text: str) -> tuple[str, ...]:
    """The reverse of ids_to_text."""
    return msgspec.json.decode(text, type=tuple[str, ...])


class Table(Generic[Record]):
    """One table whose columns are the fields of one record type.

    `into` and `back` convert the few columns that SQLite cannot hold as they
    are; `kept` replaces how a column is overwritten when the row exists.
    """

    def __init__(
        self,
        name: str,
        record: type[Record],
        key: Sequence[str],
        *,
        into: Mapping[str, Convert] | None = None,
        back: Mapping[str, Convert] | None = None,
        kept: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.columns = record.__struct_fields__
        self.select = f"SELECT {', '.join(self.columns)} FROM {name}"  # noqa: S608
        self._record = record
        self._into = [(self.columns.index(n), c) for n, c in (into or {}).items()]
        self._back = {self.columns.index(n): c for n, c in (back or {}).items()}
        self._upsert = _upsert(name, self.columns, key, kept or {})

    def save(self, connection: sqlite3.Connection, record: Record) -> None:
        """Insert the record's row, or overwrite the one with its key."""
        connection.execute(self._upsert, self._row(record))

    def save_all(
        self, connection: sqlite3.Connection, records: Iterable[Record]
    ) -> None:
        """The same for many, in their order."""
        connection.executemany(self._upsert, map(self._row, records))

    def read(
        self,
        connection: sqlite3.Connection,
        rest: str = "",
        values: Sequence[object] = (),
    ) -> list[Record]:
        """The records that `rest` (WHERE, ORDER BY, LIMIT) picks."""
        rows = connection.execute(f"{self.select} {rest}", tuple(values))
        return [self._from_row(row) for row in rows]

    def read_one(
        self, connection: sqlite3.Connection, rest: str, values: Sequence[object]
    ) -> Record | None:
        """The first record that `rest` picks, or None."""
        found = self.read(connection, f"{rest} LIMIT 1", values)
        return found[0] if found else None

    def _row(self, record: Record) -> Sequence[object]:
        row: list[object] = list(astuple(record))
        for number, convert in self._into:
            row[number] = convert(row[number])
        return row

    def _from_row(self, row: tuple[Any, ...]) -> Record:
        values = list(row)
        for index, convert in self._back.items():
            values[index] = convert(values[index])
        return self._record(*values)


def _upsert(
    name: str, columns: Sequence[str], key: Sequence[str], kept: Mapping[str, str]
) -> str:
    marks = ", ".join("?" * len(columns))
    changes = ", ".join(
        f"{column} = {kept.get(column, f'excluded.{column}')}"
        for column in columns
        if column not in key
    )
    return (
        f"INSERT INTO {name} ({', '.join(columns)}) VALUES ({marks}) "  # noqa: S608
        f"ON CONFLICT ({', '.join(key)}) DO UPDATE SET {changes}"
    )
