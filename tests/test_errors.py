"""What a disk refuses becomes a sentence that a person can act on."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from bridge.errors import (
    EXIT_UNREACHABLE,
    BridgeError,
    StorageBroken,
    StorageFull,
    disk_named,
)

PLACE = Path("/a/state/folder")


@pytest.mark.parametrize(
    ("number", "kind", "words"),
    [
        (errno.ENOSPC, StorageFull, "no room"),
        (errno.EDQUOT, StorageFull, "no room"),
        (errno.EIO, StorageBroken, "Input/output error"),
        (errno.EROFS, StorageBroken, "Read-only file system"),
    ],
)
def test_what_the_disk_refused_is_named_with_its_place(
    number: int, kind: type[BridgeError], words: str
) -> None:
    with pytest.raises(kind, match=words) as caught, disk_named(PLACE):
        raise OSError(number, os.strerror(number))

    assert str(PLACE) in caught.value.message
    assert caught.value.hint
    assert caught.value.exit_code == EXIT_UNREACHABLE


def test_a_bug_is_not_blamed_on_the_disk() -> None:
    with pytest.raises(KeyError), disk_named(PLACE):
        raise KeyError("a bug")
