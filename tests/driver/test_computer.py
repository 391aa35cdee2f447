"""This computer's id: made once, and never one that we did not write."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridge.driver.computer import host_id
from bridge.errors import EXIT_CONFIG, Refused
from bridge.paths import Paths


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    made = Paths(tmp_path / "c", tmp_path / "s", tmp_path / "c" / "config.json")
    made.prepare()
    return made


def test_an_id_is_made_once(paths: Paths) -> None:
    first = host_id(paths)

    assert host_id(paths) == first
    assert (paths.state / "host_id").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "content",
    [b"", b"host-1", b"cnry-quillwort", b"host-0123456789abcdef\nhost-1", b"\xff" * 21],
)
def test_an_id_that_we_did_not_write_is_refused_unquoted(
    paths: Paths, content: bytes
) -> None:
    file = paths.state / "host_id"
    file.write_bytes(content)
    file.chmod(0o600)

    with pytest.raises(Refused, match="host_id") as caught:
        host_id(paths)

    assert caught.value.exit_code == EXIT_CONFIG
    assert "cnry" not in caught.value.sentence()
    assert file.read_bytes() == content
