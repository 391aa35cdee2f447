"""Our folders and private files: made private, and refused when they are not."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bridge.errors import EXIT_CONFIG, Refused
from bridge.paths import (
    Paths,
    locate,
    make_private_folder,
    open_private_folder,
    read_private_file,
    write_private_file,
)
from tests.faults.capabilities import need_root


@pytest.fixture(params=[0o000, 0o022, 0o077], ids=["000", "022", "077"])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for variable in (
        "XDG_STATE_HOME",
        "XDG_CONFIG_HOME",
        "AGENTWORKS_STATE",
        "AGENTWORKS_CONFIG",
    ):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def paths_below(folder: Path) -> Paths:
    config = folder / "config"
    return Paths(
        config=config, state=folder / "state", config_file=config / "config.json"
    )


def tree(folder: Path) -> list[tuple[str, int, int]]:
    return sorted(
        (str(path), path.lstat().st_mode, path.lstat().st_uid)
        for path in folder.rglob("*")
    )


# ---- where ------------------------------------------------------------------


def test_the_state_folder_is_below_home(home: Path) -> None:
    paths = locate()

    assert home in paths.state.parents
    assert paths.state.name == "agentworks"
    assert paths.config_file == paths.config / "config.json"
    assert not home.exists()


def test_every_place_is_below_the_state_folder(home: Path) -> None:
    paths = locate()

    assert paths.socket == paths.state / "run" / "bridge.sock"
    assert paths.lock == paths.state / "run" / "lock"
    assert paths.journal == paths.state / "journal.sqlite3"
    assert paths.parent_token == paths.state / "server" / "parent.json"


def test_the_state_variable_wins(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTWORKS_STATE", "/elsewhere/state")

    assert locate().state == Path("/elsewhere/state")


def test_a_named_settings_file_wins_over_the_variable(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTWORKS_CONFIG", "/elsewhere/b.json")

    assert locate().config_file == Path("/elsewhere/b.json")
    assert locate("/else/a.json").config_file == Path("/else/a.json")


@pytest.mark.parametrize("value", [None, "", "home/me", "~", "/home/\udcff"])
def test_an_unusable_home_is_refused_with_the_fix(
    home: Path, monkeypatch: pytest.MonkeyPatch, value: str | None
) -> None:
    if value is None:
        monkeypatch.delenv("HOME")
    else:
        monkeypatch.setenv("HOME", value)

    with pytest.raises(Refused) as caught:
        locate()

    assert caught.value.exit_code == EXIT_CONFIG
    assert "Set HOME" in caught.value.hint


@pytest.mark.parametrize("variable", ["AGENTWORKS_STATE", "AGENTWORKS_CONFIG"])
@pytest.mark.parametrize("value", ["relative/path", "~/state", "/x/\udcfe"])
def test_an_unusable_override_is_refused_by_name(
    home: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)

    with pytest.raises(Refused, match=variable):
        locate()


def test_a_home_with_letters_of_any_language_works(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "höme 東"))

    locate().prepare()

    assert mode(locate().run) == 0o700


# ---- folders ----------------------------------------------------------------


def test_what_we_make_is_private_at_any_umask(tmp_path: Path, umask: int) -> None:
    paths = paths_below(tmp_path / "new" / "deep")

    paths.prepare()

    made = [tmp_path / "new", paths.state, paths.run, paths.leases, paths.server]
    assert [mode(folder) for folder in made] == [0o700] * len(made)


def test_preparing_twice_is_the_same_as_once(tmp_path: Path) -> None:
    paths_below(tmp_path).prepare()
    before = tree(tmp_path)

    paths_below(tmp_path).prepare()

    assert tree(tmp_path) == before


def place_group_bits(place: Path) -> None:
    place.mkdir()
    place.chmod(0o770)


def place_a_file(place: Path) -> None:
    place.write_text("not a folder")


def place_a_link(place: Path) -> None:
    target = place.parent / "target"
    target.mkdir(mode=0o700)
    place.symlink_to(target)


def place_a_dangling_link(place: Path) -> None:
    place.symlink_to(place.parent / "nowhere")


def place_a_folder_we_cannot_enter(place: Path) -> None:
    place.mkdir()
    place.chmod(0o600)


@pytest.mark.parametrize("name", ["", "run", "leases"])
@pytest.mark.parametrize(
    ("put", "word"),
    [
        (place_group_bits, "chmod 700"),
        (place_a_file, "mv "),
        (place_a_link, "rm "),
        (place_a_dangling_link, "rm "),
        (place_a_folder_we_cannot_enter, "chmod 700"),
    ],
)
def test_an_unsafe_folder_is_refused_and_nothing_is_touched(
    tmp_path: Path, name: str, put: Callable[[Path], None], word: str
) -> None:
    paths = paths_below(tmp_path)
    if name:
        paths.state.mkdir(mode=0o700)
    put(paths.state / name)
    before = tree(tmp_path)

    with pytest.raises(Refused) as caught:
        paths.prepare()

    assert caught.value.exit_code == EXIT_CONFIG
    assert word in caught.value.hint
    assert tree(tmp_path) == before


def test_a_folder_of_another_user_is_refused(tmp_path: Path) -> None:
    need_root()
    paths = paths_below(tmp_path)
    paths.state.mkdir(mode=0o700)
    os.chown(paths.state, 65534, 65534)

    with pytest.raises(Refused, match="belongs to uid 65534"):
        paths.prepare()

    assert tree(paths.state) == []


def test_a_missing_folder_is_not_opened(tmp_path: Path) -> None:
    with pytest.raises(Refused) as caught:
        open_private_folder(tmp_path / "run")

    assert caught.value.code == "folder_missing"


def test_a_folder_that_cannot_be_made_is_one_refusal(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(Refused) as caught:
        make_private_folder(tmp_path / "file" / "state")

    assert caught.value.code == "folder_not_made"


# ---- files ------------------------------------------------------------------


def test_a_written_file_is_private_at_any_umask(tmp_path: Path, umask: int) -> None:
    file = tmp_path / "lease.json"

    write_private_file(file, b"first")
    write_private_file(file, b"second")

    assert mode(file) == 0o600
    assert read_private_file(file, 100) == b"second"
    assert os.listdir(tmp_path) == ["lease.json"]


def test_a_missing_file_is_none(tmp_path: Path) -> None:
    assert read_private_file(tmp_path / "none", 10) is None
    assert read_private_file(tmp_path / "no" / "folder", 10) is None


def test_a_file_at_the_limit_is_read_and_above_refused(tmp_path: Path) -> None:
    write_private_file(tmp_path / "f", b"x" * 10)

    assert read_private_file(tmp_path / "f", 10) == b"x" * 10
    with pytest.raises(Refused, match="larger than 9 bytes"):
        read_private_file(tmp_path / "f", 9)


def place_open_file(place: Path) -> None:
    place.write_text("secret")
    place.chmod(0o644)


def place_file_link(place: Path) -> None:
    target = place.parent / "target"
    target.write_text("secret")
    target.chmod(0o600)
    place.symlink_to(target)


def place_fifo(place: Path) -> None:
    os.mkfifo(place, 0o600)


@pytest.mark.parametrize(
    "put", [place_open_file, place_file_link, place_fifo, Path.mkdir]
)
def test_an_unsafe_file_is_neither_read_nor_replaced(
    tmp_path: Path, put: Callable[[Path], None]
) -> None:
    place = tmp_path / "config.json"
    put(place)
    before = tree(tmp_path)

    with pytest.raises(Refused) as reading:
        read_private_file(place, 100)
    with pytest.raises(Refused) as writing:
        write_private_file(place, b"new")

    for refusal in (reading.value, writing.value):
        assert refusal.exit_code == EXIT_CONFIG
        assert "secret" not in refusal.sentence()
    assert tree(tmp_path) == before


def test_a_fifo_with_a_waiting_writer_is_not_read(tmp_path: Path) -> None:
    place = tmp_path / "config.json"
    os.mkfifo(place, 0o600)
    keeper = os.open(place, os.O_RDWR)
    os.write(keeper, b"{}")

    with pytest.raises(Refused, match="not a plain file"):
        read_private_file(place, 100)

    os.close(keeper)


def test_a_file_of_another_user_is_refused(tmp_path: Path) -> None:
    need_root()
    place = tmp_path / "config.json"
    write_private_file(place, b"{}")
    os.chown(place, 65534, 65534)

    with pytest.raises(Refused, match="belongs to uid"):
        read_private_file(place, 100)


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    place = tmp_path / "lease.json"
    write_private_file(place, b"old")
    (tmp_path / f".lease.json.{os.getpid()}.new").mkdir()

    with pytest.raises(OSError, match="lease"):
        write_private_file(place, b"new")

    assert read_private_file(place, 100) == b"old"


def test_a_stale_temporary_file_is_replaced(tmp_path: Path) -> None:
    place = tmp_path / "lease.json"
    (tmp_path / f".lease.json.{os.getpid()}.new").write_text("half")

    write_private_file(place, b"new")

    assert read_private_file(place, 100) == b"new"


def test_a_reader_never_sees_half_a_file(tmp_path: Path) -> None:
    place = tmp_path / "lease.json"
    texts = {b"a" * 100_000, b"b" * 100_000}
    write_private_file(place, b"a" * 100_000)
    ended = threading.Event()

    def write() -> None:
        for _ in range(20):
            for text in texts:
                write_private_file(place, text)
        ended.set()

    writer = threading.Thread(target=write)
    writer.start()
    seen = set()
    while not ended.is_set():
        seen.add(read_private_file(place, 200_000))
    writer.join()

    assert seen <= texts
