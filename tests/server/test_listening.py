"""The socket's place and the lock."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from bridge.errors import StorageBroken, Unavailable
from bridge.server.listening import only_server, open_listener, unlink_own


def test_the_socket_is_private_and_listens(tmp_path: Path) -> None:
    path = tmp_path / "server.sock"

    with open_listener(path), socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))

        assert path.stat().st_mode & 0o777 == 0o600


def test_a_dead_socket_is_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "server.sock"
    open_listener(path).close()

    with open_listener(path), socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))


def test_a_live_socket_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "server.sock"
    with open_listener(path), socket.socket(socket.AF_UNIX) as client:
        with pytest.raises(Unavailable) as caught:
            open_listener(path)

        client.connect(str(path))
    assert caught.value.code == "socket_unusable"
    assert "Something is there already" in caught.value.hint


def test_a_folder_that_is_missing_is_said_to_be(tmp_path: Path) -> None:
    with pytest.raises(Unavailable) as caught:
        open_listener(tmp_path / "nowhere" / "server.sock")

    assert "a folder of yours that exists" in caught.value.hint


@pytest.mark.parametrize("kind", ["file", "folder", "link"])
def test_anything_else_in_its_place_is_left_alone(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "server.sock"
    if kind == "file":
        path.write_text("mine")
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(tmp_path / "elsewhere")

    with pytest.raises(Unavailable):
        open_listener(path)

    assert path.is_symlink() or path.exists()
    assert not (tmp_path / "elsewhere").exists()


def test_a_path_over_103_bytes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Unavailable) as caught:
        open_listener(tmp_path / ("x" * 104))

    assert caught.value.code == "path_too_long"


def test_only_ones_own_socket_is_unlinked(tmp_path: Path) -> None:
    path = tmp_path / "server.sock"
    with open_listener(path):
        bound = path.stat()
        path.unlink()
        with open_listener(path):
            unlink_own(path, bound)
            assert path.exists()

            unlink_own(path, path.stat())
    assert not path.exists()
    unlink_own(path, bound)


def test_one_process_serves_a_database(tmp_path: Path) -> None:
    database = tmp_path / "server.sqlite3"
    with (
        only_server(database),
        pytest.raises(Unavailable) as caught,
        only_server(database),
    ):
        pass

    assert caught.value.code == "already_served"
    assert "agentworks bridge stop" in caught.value.hint
    with only_server(database):
        pass
    assert (tmp_path / "server.sqlite3.lock").exists()


def test_a_lock_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    with pytest.raises(StorageBroken), only_server(tmp_path / "none" / "x"):
        pass
