"""Fault rows 26, 27, 29, 32 and 44: the real command in places it must not use.

Each is refused in one sentence that names the place, and left as it was.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from bridge.paths import Paths
from tests.faults.capabilities import OTHER_UID, need_namespaces, need_root

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
SECRET = "cnry-quillwort"
WITHIN_S = 30.0
Put = Callable[[Path], None]


class Home:
    """A person's home, and the command run there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": str(folder),
            "LANG": "C.UTF-8",
            "PYTHONPATH": str(ROOT),
        }
        state = folder / ".local/state/agentworks"
        config = folder / ".config/agentworks"
        self.paths = Paths(config, state, config / "config.json")

    def run(self, *words: str, before: str = "") -> subprocess.CompletedProcess[str]:
        """`agentworks bridge run` with these words before it, to its end."""
        command = [sys.executable, "-P", "-m", "bridge", *words, "bridge", "run"]
        if before:
            line = f'{before} && exec "$@"'
            command = ["unshare", "-m", "sh", "-c", line, "sh", *command]
        return subprocess.run(
            command,
            env=self.environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=WITHIN_S,
            check=False,
        )

    def tree(self) -> list[tuple[str, int, int, int]]:
        """All that is there, but for what a start may make new."""
        return sorted(
            (str(each), found.st_ino, found.st_mode, found.st_uid)
            for each in self.folder.rglob("*")
            for found in [each.lstat()]
        )


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = tmp_path / "home"
    made.mkdir(mode=0o700)
    return Home(made)


def refused(answer: subprocess.CompletedProcess[str], place: Path) -> bool:
    """One line that names the place, a permanent no, and nothing of a file."""
    lines = answer.stderr.strip().splitlines()
    assert answer.returncode == 78, answer
    assert len(lines) == 1, answer
    assert lines[0].startswith("Error: ")
    assert str(place) in lines[0]
    assert SECRET not in answer.stdout + answer.stderr
    return True


# ---- folders ----------------------------------------------------------------------


def group_writable_folder(place: Path) -> None:
    place.mkdir()
    place.chmod(0o770)


def folder_of_another(place: Path) -> None:
    need_root()
    place.mkdir(mode=0o700)
    os.chown(place, OTHER_UID, OTHER_UID)


def file(place: Path) -> None:
    place.write_text(SECRET)


def link_to_a_folder(place: Path) -> None:
    target = place.with_name("target")
    target.mkdir(mode=0o700)
    place.symlink_to(target)


@pytest.mark.parametrize("name", ["", "run"])
@pytest.mark.parametrize(
    "put", [group_writable_folder, folder_of_another, file, link_to_a_folder]
)
def test_a_folder_that_is_not_ours_alone_is_refused_and_nothing_is_touched(
    home: Home, name: str, put: Put
) -> None:
    place = home.paths.state / name if name else home.paths.state
    place.parent.mkdir(mode=0o700, parents=True)
    if name:
        home.paths.state.chmod(0o700)
    put(place)
    before = home.tree()

    assert refused(home.run(), place)
    assert home.tree() == before


# ---- files ------------------------------------------------------------------------


def link(place: Path) -> None:
    sentinel = place.with_name("sentinel")
    sentinel.write_text(SECRET)
    sentinel.chmod(0o600)
    place.symlink_to(sentinel)


def dangling_link(place: Path) -> None:
    place.symlink_to(place.with_name("nowhere"))


def pipe(place: Path) -> None:
    os.mkfifo(place, 0o600)


def open_file(place: Path) -> None:
    place.write_text(f'{{"server":"{SECRET}"}}')
    place.chmod(0o644)


def file_of_another(place: Path) -> None:
    need_root()
    private(place, "{}")
    os.chown(place, OTHER_UID, OTHER_UID)


def private(place: Path, content: str) -> None:
    place.write_text(content)
    place.chmod(0o600)


def huge_file(place: Path) -> None:
    private(place, " " * 5_000_000)


def no_json(place: Path) -> None:
    private(place, f"{{{SECRET}")


def unknown_keys(place: Path) -> None:
    private(place, f'{{"{SECRET}": "{SECRET}"}}')


def deep_json(place: Path) -> None:
    private(place, "[" * 5_000)


BAD_CONTENT = [huge_file, no_json, unknown_keys, deep_json]
BAD_FILES = [dangling_link, link, pipe, open_file, file_of_another]


def target_is_untouched(place: Path) -> bool:
    sentinel = place.with_name("sentinel")
    assert not place.with_name("nowhere").exists()
    return not sentinel.exists() or sentinel.read_text() == SECRET


OUR_FILES = ("run/bridge.sock", "run/lock", "journal.sqlite3")


@pytest.mark.parametrize(
    ("name", "put"),
    [
        *((name, put) for name in OUR_FILES for put in (link, dangling_link, pipe)),
        ("run/bridge.sock", open_file),
        ("journal.sqlite3", open_file),
    ],
)
def test_what_is_in_the_place_of_our_file_is_refused_and_left(
    home: Home, name: str, put: Put
) -> None:
    home.paths.prepare()
    place = home.paths.state / name
    put(place)
    before = place.lstat()

    assert refused(home.run(), place)
    assert (place.lstat().st_ino, place.lstat().st_mode) == (
        before.st_ino,
        before.st_mode,
    )
    assert target_is_untouched(place)


@pytest.mark.parametrize("put", [link, dangling_link, pipe, file_of_another])
def test_a_database_of_the_server_that_is_not_our_file_is_refused_and_left(
    home: Home, put: Put
) -> None:
    home.paths.prepare()
    place = home.paths.server / "server.sqlite3"
    put(place)

    assert refused(home.run(), place)
    assert target_is_untouched(place)


@pytest.mark.parametrize("put", [link, dangling_link, pipe])
def test_a_log_that_is_not_our_file_is_refused_and_left(home: Home, put: Put) -> None:
    home.paths.prepare()
    place = home.paths.log / "bridge.log"
    put(place)
    command = [sys.executable, "-P", "-m", "bridge", "bridge", "start"]
    answer = subprocess.run(
        command,
        env=home.environment,
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        check=False,
    )

    assert refused(answer, place)
    assert target_is_untouched(place)


@pytest.fixture
def theirs(home: Home) -> Iterator[socket.socket]:
    """A program that listens at our socket's place."""
    home.paths.prepare()
    with closing(socket.socket(socket.AF_UNIX)) as bound:
        before = Path.cwd()
        os.chdir(home.paths.run)
        bound.bind("bridge.sock")
        os.chdir(before)
        bound.listen()
        yield bound


def test_a_live_socket_of_another_program_is_refused_and_left(
    home: Home, theirs: socket.socket
) -> None:
    inode = home.paths.socket.lstat().st_ino

    assert refused(home.run(), home.paths.socket)
    assert home.paths.socket.lstat().st_ino == inode


# ---- settings and tokens ------------------------------------------------------------


@pytest.mark.parametrize("put", [*BAD_FILES, *BAD_CONTENT])
def test_settings_that_cannot_be_trusted_are_refused_unquoted(
    home: Home, put: Put
) -> None:
    place = home.paths.config_file
    place.parent.mkdir(mode=0o700, parents=True)
    put(place)

    assert refused(home.run(), place)
    assert target_is_untouched(place)


@pytest.mark.parametrize("put", [*BAD_FILES, *BAD_CONTENT])
def test_a_login_that_cannot_be_trusted_is_refused_unquoted(
    home: Home, put: Put
) -> None:
    home.paths.prepare()
    place = home.paths.parent_token
    put(place)

    assert refused(home.run("--server", f"unix://{home.folder}/s.sock"), place)
    assert target_is_untouched(place)


@pytest.mark.parametrize("put", [*BAD_FILES, *BAD_CONTENT])
def test_a_host_id_that_cannot_be_trusted_is_refused_unquoted(
    home: Home, put: Put
) -> None:
    home.paths.prepare()
    place = home.paths.state / "host_id"
    put(place)

    assert refused(home.run(), place)
    assert target_is_untouched(place)


# ---- homes --------------------------------------------------------------------------


@pytest.mark.parametrize("value", [None, "", "home", "/home/\udcff"])
def test_a_home_that_is_no_path_is_refused(home: Home, value: str | None) -> None:
    if value is None:
        del home.environment["HOME"]
    else:
        home.environment["HOME"] = value

    answer = home.run()

    assert refused(answer, Path("HOME"))


@pytest.mark.parametrize("is_prepared", [False, True])
def test_a_home_that_cannot_be_written_is_refused(
    home: Home, is_prepared: bool
) -> None:
    need_namespaces()
    if is_prepared:
        home.paths.prepare()
    only_read = f"mount --bind {home.folder} {home.folder} && mount -o remount,bind,ro"

    answer = home.run(before=f"{only_read} {home.folder}")

    assert refused(answer, home.folder)
    assert "Read-only" in answer.stderr
