"""What is taken away from the folders, and what never is."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridge.config import Credentials, Settings, load_settings, save_settings
from bridge.errors import Refused
from bridge.paths import Paths, write_private_file
from bridge.service import remains

JOURNAL = ("journal.sqlite3", "journal.sqlite3-wal", "journal.sqlite3.new")


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    """A state folder as a bridge leaves it."""
    made = Paths(tmp_path / "c", tmp_path / "s", tmp_path / "c" / "config.json")
    made.prepare()
    made.config.mkdir(mode=0o700)
    for place in (
        made.socket,
        made.lock,
        made.leases / "att-1.json",
        made.parent_token,
        made.refused,
        made.server / "server.sqlite3",
        made.log / "bridge.log",
        made.bin / "ask",
        made.state / "host_id",
        *(made.state / name for name in JOURNAL),
    ):
        write_private_file(place, b"x")
    return made


def left(paths: Paths) -> set[str]:
    files = (each for each in paths.state.rglob("*") if not each.is_dir())
    return {str(each.relative_to(paths.state)) for each in files}


def test_what_gives_access_goes_and_every_message_stays(paths: Paths) -> None:
    gone = remains.remove_access(paths)

    assert left(paths) == {
        *JOURNAL, "server/server.sqlite3", "log/bridge.log", "bin/ask", "host_id"
    }  # fmt: skip
    assert set(gone) == {
        str(each)
        for each in (paths.run, paths.leases, paths.parent_token, paths.refused)
    }


def test_a_purge_leaves_no_folder(paths: Paths) -> None:
    gone = remains.remove_all(paths)

    assert not paths.state.exists()
    assert str(paths.journal) in gone


@pytest.mark.parametrize("remove", [remains.remove_access, remains.remove_all])
def test_a_file_that_is_not_ours_is_left(paths: Paths, remove: object) -> None:
    (paths.state / "thesis.txt").write_text("mine")
    (paths.state / "journal.txt").write_text("mine")

    assert callable(remove)
    remove(paths)

    assert {"thesis.txt", "journal.txt"} <= left(paths)


def test_nothing_to_remove_is_nothing_removed(tmp_path: Path) -> None:
    paths = Paths(tmp_path / "c", tmp_path / "s", tmp_path / "c" / "config.json")

    assert remains.remove_all(paths) == ()


def test_a_link_in_a_folders_place_is_removed_and_not_followed(
    paths: Paths, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "kept").touch()
    for each in paths.leases.iterdir():
        each.unlink()
    paths.leases.rmdir()
    paths.leases.symlink_to(elsewhere)

    remains.remove_access(paths)

    assert not paths.leases.is_symlink()
    assert (elsewhere / "kept").exists()


def test_a_folder_that_others_may_write_to_is_not_touched(paths: Paths) -> None:
    paths.leases.chmod(0o777)

    with pytest.raises(Refused):
        remains.remove_access(paths)

    assert (paths.leases / "att-1.json").exists()


def test_the_login_in_the_settings_goes_and_the_server_stays(paths: Paths) -> None:
    server = "https://messages.example"
    save_settings(paths.config_file, Settings(server, Credentials("cnry-token")))

    gone = remains.remove_access(paths)

    assert load_settings(paths.config_file) == Settings(server)
    assert "cnry-token" not in paths.config_file.read_text()
    assert f"{paths.config_file} (the login in it)" in gone


@pytest.mark.parametrize("content", [b"{not json", b"{}"])
def test_settings_without_a_login_are_left_as_they_are(
    paths: Paths, content: bytes
) -> None:
    write_private_file(paths.config_file, content)

    remains.remove_access(paths)

    assert paths.config_file.read_bytes() == content
