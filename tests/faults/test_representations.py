"""Fault row 45: what is made for people to read never shows a token."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

import pytest
from msgspec import Struct

import bridge

TOKEN = "cnry-token"


def records(base: type[Struct] = Struct) -> Iterator[type[Struct]]:
    """Every kind of record of ours, wherever it is declared."""
    for each in base.__subclasses__():
        if each.__module__.startswith("bridge."):
            yield each
        yield from records(each)


def tokens_in(record: type[Struct]) -> list[str]:
    return [name for name in record.__struct_fields__ if name.endswith("token")]


for found in pkgutil.walk_packages(bridge.__path__, "bridge."):
    if not found.name.endswith("__main__"):
        importlib.import_module(found.name)
WITH_TOKENS = sorted(set(filter(tokens_in, records())), key=str)


def test_there_are_records_with_tokens() -> None:
    assert len(WITH_TOKENS) >= 5


@pytest.mark.parametrize("record", WITH_TOKENS, ids=str)
def test_no_record_shows_a_token(record: type[Struct]) -> None:
    hidden = tokens_in(record)
    made = record(
        **{name: TOKEN if name in hidden else "x" for name in record.__struct_fields__}
    )

    assert TOKEN not in repr(made)
    assert TOKEN not in f"{[made]}"
