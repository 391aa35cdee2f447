"""One daemon per state folder, and a socket that is private and only ours."""

from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bridge.errors import EXIT_CONFIG, EXIT_UNREACHABLE, Refused, Unavailable
from bridge.local.instance import Instance, is_claimed
from bridge.paths import Paths

ROOT = Path(__file__).resolve().parents[2]
STARTER = Path(__file__).with_name("starter.py")
Start = Callable[[], subprocess.Popen[str]]


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Paths:
    monkeypatch.chdir(tmp_path)  # a claim changes it; this puts it back
    made = Paths(
        config=tmp_path / "c", state=tmp_path / "s", config_file=tmp_path / "c" / "f"
    )
    made.prepare()
    return made


@pytest.fixture
def start(paths: Paths) -> Iterator[Start]:
    started: list[subprocess.Popen[str]] = []

    def start_one() -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, STARTER, paths.state],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"]},
        )
        started.append(process)
        return process

    yield start_one
    for process in started:
        process.kill()
        process.communicate()


def let_go(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_twelve_starters_have_one_winner(start: Start) -> None:
    starters = [start() for _ in range(12)]
    for process in starters:
        let_go(process)
    words = [said(process) for process in starters]

    won = [word for word in words if word.startswith("won")]
    lost = [word for word in words if word.startswith("already_running")]
    assert len(won) == 1
    assert len(lost) == 11
    winner = won[0].split()[1]
    assert all(f"(pid {winner})" in word for word in lost)
    codes = [process.wait() for process in starters if str(process.pid) != winner]
    assert codes == [EXIT_UNREACHABLE] * 11


def test_a_killed_winner_is_followed_at_once(start: Start, paths: Paths) -> None:
    first = start()
    let_go(first)
    assert said(first).startswith("won")
    first.send_signal(signal.SIGKILL)
    first.wait()
    assert paths.socket.exists()

    second = start()
    let_go(second)

    assert said(second) == f"won {second.pid}"
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(os.path.relpath(paths.socket))


def test_the_second_in_a_process_learns_the_pid(paths: Paths) -> None:
    with Instance.claim(paths), pytest.raises(Unavailable) as caught:
        Instance.claim(paths)

    assert caught.value.code == "already_running"
    assert caught.value.exit_code == EXIT_UNREACHABLE
    assert f"pid {os.getpid()}" in caught.value.message


def test_a_stale_pid_in_the_lock_file_is_not_believed(paths: Paths) -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    paths.lock.write_text(f"{gone.pid}\n")
    paths.lock.chmod(0o600)

    with Instance.claim(paths):
        assert paths.lock.read_text() == f"{os.getpid()}\n"


def test_the_lock_file_stays_and_the_socket_goes(paths: Paths) -> None:
    with Instance.claim(paths) as instance:
        instance.listen()
        inode = paths.lock.stat().st_ino

    assert not paths.socket.exists()
    assert paths.lock.stat().st_ino == inode
    Instance.claim(paths).release()


def test_a_claim_can_be_seen_from_outside(paths: Paths) -> None:
    assert not is_claimed(paths)
    with Instance.claim(paths):
        assert is_claimed(paths)
    assert paths.lock.exists()
    assert not is_claimed(paths)


def test_the_run_folder_is_the_working_folder(paths: Paths) -> None:
    with Instance.claim(paths):
        assert Path.cwd().samefile(paths.run)


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077], ids=oct)
def test_a_socket_is_private_at_any_umask(paths: Paths, umask: int) -> None:
    before = os.umask(umask)
    with Instance.claim(paths) as instance:
        instance.listen()
        during = os.umask(before)

        assert stat.S_IMODE(paths.socket.stat().st_mode) == 0o600
        assert stat.S_IMODE(paths.lock.stat().st_mode) == 0o600 & ~umask
    assert during == umask


def test_a_path_of_any_length_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    state = tmp_path / ("long-" * 40)
    paths = Paths(config=state, state=state, config_file=state / "config.json")
    paths.prepare()
    assert len(os.fsencode(paths.socket)) > 135

    with Instance.claim(paths) as instance, socket.socket(socket.AF_UNIX) as client:
        instance.listen()
        client.connect("bridge.sock")

    assert not paths.socket.exists()


def test_a_live_socket_of_another_program_is_left(paths: Paths) -> None:
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(os.path.relpath(paths.socket))
        other.listen()
        inode = paths.socket.stat().st_ino

        with Instance.claim(paths) as instance, pytest.raises(Refused) as caught:
            instance.listen()

        assert caught.value.exit_code == EXIT_CONFIG
        assert paths.socket.stat().st_ino == inode


def test_a_full_backlog_is_a_live_program(paths: Paths) -> None:
    with socket.socket(socket.AF_UNIX) as other, socket.socket(socket.AF_UNIX) as full:
        other.bind(os.path.relpath(paths.socket))
        other.listen(0)
        full.connect(os.path.relpath(paths.socket))

        with Instance.claim(paths) as instance, pytest.raises(Refused):
            instance.listen()


def put_a_file(place: Path) -> None:
    place.write_text("mine")


def put_a_link(place: Path) -> None:
    (place.parent / "sentinel").write_text("mine")
    place.symlink_to(place.parent / "sentinel")


def put_a_dangling_link(place: Path) -> None:
    place.symlink_to(place.parent / "nowhere")


@pytest.mark.parametrize("put", [put_a_file, put_a_link, put_a_dangling_link])
def test_what_is_not_a_socket_is_left(
    paths: Paths, put: Callable[[Path], None]
) -> None:
    put(paths.socket)
    before = [(path.name, path.lstat().st_ino) for path in paths.run.iterdir()]

    with Instance.claim(paths) as instance, pytest.raises(Refused):
        instance.listen()

    after = [(path.name, path.lstat().st_ino) for path in paths.run.iterdir()]
    assert [entry for entry in after if entry[0] != "lock"] == before


@pytest.mark.parametrize(
    "put", [put_a_link, put_a_dangling_link, os.mkfifo, Path.mkdir]
)
def test_a_lock_that_is_no_plain_file_is_left(
    paths: Paths, put: Callable[[Path], None]
) -> None:
    put(paths.lock)
    before = paths.lock.lstat()

    with pytest.raises(Refused) as caught:
        Instance.claim(paths)

    assert caught.value.exit_code == EXIT_CONFIG
    assert paths.lock.lstat() == before
    assert not (paths.run / "nowhere").exists()


def test_a_socket_that_is_not_ours_is_not_unlinked(paths: Paths) -> None:
    with Instance.claim(paths) as instance, socket.socket(socket.AF_UNIX) as other:
        instance.listen()
        paths.socket.unlink()
        other.bind("bridge.sock")
        inode = paths.socket.stat().st_ino

        instance.release()

        assert paths.socket.stat().st_ino == inode


def test_a_socket_that_somebody_removed_is_no_trouble(paths: Paths) -> None:
    with Instance.claim(paths) as instance:
        instance.listen()
        paths.socket.unlink()


def test_an_unsafe_run_folder_is_refused(paths: Paths) -> None:
    paths.run.chmod(0o770)

    with pytest.raises(Refused) as caught:
        Instance.claim(paths)

    assert caught.value.exit_code == EXIT_CONFIG
    assert list(paths.run.iterdir()) == []
