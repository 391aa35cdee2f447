"""The lease files: whole, private, and refused when anybody else could reach them."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import pytest
import trio

from bridge.core.ids import AttachmentId
from bridge.core.tokens import ChildTokens
from bridge.errors import (
    EXIT_CONFIG,
    Refused,
    StorageBroken,
    StorageFull,
    Unavailable,
)
from bridge.store import leases as leases_module
from bridge.store.leases import Leases
from tests.fakes.descriptors import no_descriptor
from tests.faults.capabilities import need_root

ATTACHMENT_ID = AttachmentId("att-0193-1")
TOKENS = ChildTokens("connection-1", "cnry-access", "cnry-refresh", 1_790_003_600.5)
NEXT = msgspec.structs.replace(TOKENS, access_token="cnry-access-2")


@pytest.fixture
def leases(tmp_path: Path) -> Leases:
    return Leases(tmp_path / "leases")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "leases" / f"{ATTACHMENT_ID}.json"


async def test_tokens_are_read_as_they_were_saved(leases: Leases) -> None:
    await leases.save(ATTACHMENT_ID, TOKENS)
    assert await leases.read(ATTACHMENT_ID) == TOKENS

    await leases.save(ATTACHMENT_ID, NEXT)
    assert await leases.read(ATTACHMENT_ID) == NEXT


async def test_without_a_file_there_are_no_tokens(leases: Leases) -> None:
    assert await leases.read(ATTACHMENT_ID) is None


async def test_erased_tokens_are_gone_and_erasing_again_is_harmless(
    leases: Leases, file: Path
) -> None:
    await leases.save(ATTACHMENT_ID, TOKENS)
    await leases.erase(ATTACHMENT_ID)
    await leases.erase(ATTACHMENT_ID)

    assert await leases.read(ATTACHMENT_ID) is None
    assert list(file.parent.iterdir()) == []


@pytest.mark.parametrize("mask", [0o000, 0o077])
async def test_folder_and_file_are_private_under_any_umask(
    tmp_path: Path, mask: int
) -> None:
    before = os.umask(mask)
    try:
        await Leases(tmp_path / "leases").save(ATTACHMENT_ID, TOKENS)
    finally:
        os.umask(before)

    assert (tmp_path / "leases").stat().st_mode & 0o777 == 0o700
    [file] = (tmp_path / "leases").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600


async def test_a_half_written_file_does_not_replace_the_old(
    leases: Leases, file: Path
) -> None:
    await leases.save(ATTACHMENT_ID, TOKENS)
    file.with_name(f"{file.name}.new").write_bytes(b'{"access_to')
    assert await leases.read(ATTACHMENT_ID) == TOKENS

    await leases.save(ATTACHMENT_ID, NEXT)
    assert [found.name for found in file.parent.iterdir()] == [file.name]


async def test_a_folder_that_vanished_is_a_storage_error(
    leases: Leases, file: Path
) -> None:
    file.parent.rmdir()

    with pytest.raises(StorageBroken, match="old tokens stand"):
        await leases.save(ATTACHMENT_ID, TOKENS)
    with pytest.raises(StorageBroken):
        await leases.erase(ATTACHMENT_ID)


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (errno.ENOSPC, StorageFull),
        (errno.EDQUOT, StorageFull),
        (errno.EIO, StorageBroken),
    ],
)
async def test_tokens_that_the_disk_does_not_take_leave_the_old_ones(
    leases: Leases,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    kind: type[StorageFull | StorageBroken],
) -> None:
    """No room is told apart from a disk that fails; with room it goes on."""

    def refuse(_: int) -> None:
        raise OSError(number, os.strerror(number))

    await leases.save(ATTACHMENT_ID, TOKENS)
    with monkeypatch.context() as disk:
        disk.setattr(os, "fsync", refuse)
        with pytest.raises(kind, match="old tokens stand"):
            await leases.save(ATTACHMENT_ID, NEXT)
    assert await leases.read(ATTACHMENT_ID) == TOKENS

    await leases.save(ATTACHMENT_ID, NEXT)
    assert await leases.read(ATTACHMENT_ID) == NEXT


async def lock(leases: Leases) -> None:
    async with leases.locked(ATTACHMENT_ID):
        pass


@pytest.mark.parametrize(
    "work",
    [
        lambda leases: leases.read(ATTACHMENT_ID),
        lambda leases: leases.save(ATTACHMENT_ID, NEXT),
        lock,
    ],
    ids=["read", "save", "lock"],
)
async def test_a_want_of_descriptors_is_no_bad_file_and_no_bad_disk(
    leases: Leases, work: Callable[[Leases], Awaitable[object]]
) -> None:
    await leases.save(ATTACHMENT_ID, TOKENS)

    with no_descriptor(), pytest.raises(Unavailable, match="just now"):
        await work(leases)

    assert await leases.read(ATTACHMENT_ID) == TOKENS
    await work(leases)


async def test_tokens_that_the_disk_does_not_give_are_asked_for_later(
    leases: Leases, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: int, __: int) -> bytes:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    await leases.save(ATTACHMENT_ID, TOKENS)
    with monkeypatch.context() as disk:
        disk.setattr(os, "read", refuse)
        with pytest.raises(Unavailable, match="just now"):
            await leases.read(ATTACHMENT_ID)

    assert await leases.read(ATTACHMENT_ID) == TOKENS


# ---- vetting -----------------------------------------------------------------


async def test_a_file_open_to_others_is_refused_with_the_fix(
    leases: Leases, file: Path
) -> None:
    await leases.save(ATTACHMENT_ID, TOKENS)
    file.chmod(0o644)

    with pytest.raises(Refused, match="open to others") as caught:
        await leases.read(ATTACHMENT_ID)
    assert f"rm {file}" in caught.value.hint


@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
async def test_what_is_not_a_plain_file_is_refused_and_does_not_hang(
    leases: Leases, file: Path, kind: str
) -> None:
    if kind == "link":
        file.symlink_to("/etc/hostname")
    elif kind == "pipe":
        os.mkfifo(file, 0o600)
    else:
        file.mkdir()

    with pytest.raises(Refused, match="plain file"):
        await leases.read(ATTACHMENT_ID)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b'{"access_token": "cnry-secret"}',
        msgspec.json.encode(TOKENS)[:-1] + b', "extra": "cnry-secret"}',
        b"\xff" * 10,
        b"x" * leases_module.SIZE_LIMIT,
    ],
    ids=["empty", "cut", "list", "missing", "extra", "bytes", "huge"],
)
async def test_a_file_that_we_did_not_write_is_refused_without_its_content(
    leases: Leases, file: Path, content: bytes
) -> None:
    file.write_bytes(content)
    file.chmod(0o600)

    with pytest.raises(Refused) as caught:
        await leases.read(ATTACHMENT_ID)
    assert "cnry" not in caught.value.sentence()


async def test_another_users_file_is_refused(leases: Leases, file: Path) -> None:
    need_root()
    await leases.save(ATTACHMENT_ID, TOKENS)
    os.chown(file, 65534, 65534)

    with pytest.raises(Refused, match="another user"):
        await leases.read(ATTACHMENT_ID)


@pytest.mark.parametrize("name", ["", "../journal", "a/b", ".hidden", "x" * 200, "a\0"])
async def test_an_id_that_is_no_file_name_touches_no_file(
    leases: Leases, name: str
) -> None:
    with pytest.raises(Refused, match="no attachment id"):
        await leases.save(AttachmentId(name), TOKENS)


def test_a_folder_open_to_others_is_refused_with_the_fix(tmp_path: Path) -> None:
    folder = tmp_path / "leases"
    folder.mkdir()
    folder.chmod(0o750)

    with pytest.raises(StorageBroken, match="nobody else") as caught:
        Leases(folder)
    assert caught.value.exit_code == EXIT_CONFIG
    assert caught.value.hint == f"Run: chmod 700 {folder}"


def test_a_link_in_the_folders_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "leases").symlink_to(tmp_path)

    with pytest.raises(StorageBroken):
        Leases(tmp_path / "leases")


def test_tokens_are_in_no_repr() -> None:
    assert "cnry" not in repr(TOKENS)
    assert "cnry" not in f"{[TOKENS]!r}"


# ---- the lock ----------------------------------------------------------------


async def test_a_lock_on_a_replaced_file_is_taken_again(leases: Leases) -> None:
    """Each of two refreshers finds what the one before it saved."""
    await leases.save(ATTACHMENT_ID, msgspec.structs.replace(TOKENS, expires_at=0))

    async def refresh() -> None:
        async with leases.locked(ATTACHMENT_ID):
            found = await leases.read(ATTACHMENT_ID)
            assert found is not None
            following = msgspec.structs.replace(found, expires_at=found.expires_at + 1)
            await leases.save(ATTACHMENT_ID, following)

    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(refresh)

    last = await leases.read(ATTACHMENT_ID)
    assert last is not None
    assert last.expires_at == 5


async def test_another_process_that_keeps_the_lock_is_waited_for_and_then_named(
    leases: Leases, file: Path, autojump_clock: trio.testing.MockClock
) -> None:
    await leases.save(ATTACHMENT_ID, TOKENS)
    script = (
        "import fcntl, sys\n"
        "file = open(sys.argv[1])\n"
        "fcntl.flock(file, fcntl.LOCK_EX)\n"
        "print('locked', flush=True)\n"
        "sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(file)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"locked\n"
        with pytest.raises(Unavailable, match="30 s"):
            async with leases.locked(ATTACHMENT_ID):
                pytest.fail("locked twice")
        assert trio.current_time() >= leases_module.LOCK_DEADLINE_S
        holder.communicate()

    async with leases.locked(ATTACHMENT_ID):
        pass


async def test_there_is_nothing_to_lock_without_a_file(leases: Leases) -> None:
    with pytest.raises(Refused):
        async with leases.locked(ATTACHMENT_ID):
            pytest.fail("locked nothing")
