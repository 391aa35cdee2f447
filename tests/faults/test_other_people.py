"""Fault rows 22, 24 and 43: nobody but its person gets anything of a real bridge."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path

import pytest

from tests.faults.capabilities import need_other_uid, need_program
from tests.faults.dropped import Person, another_person, ourselves

pytestmark = pytest.mark.slow

# What one of the same uid may see of a process, and whether it may be traced.
LOOK = """
import ctypes, os, sys
folder = f"/proc/{sys.argv[1]}/"
for what in ("environ", "maps", "smaps_rollup"):
    try:
        print(what, len(open(folder + what, "rb").read(10)))
    except OSError as error:
        print(what, type(error).__name__)
try:
    print("fdinfo", len(os.listdir(folder + "fdinfo")))
except OSError as error:
    print("fdinfo", type(error).__name__)
SEIZE = 0x4206  # it does not stop the other, and ends with us
print("ptrace", ctypes.CDLL(None).ptrace(SEIZE, int(sys.argv[1]), None, None))
print("cmdline", len(open(folder + "cmdline", "rb").read(10)))
"""
HELLO = b'AW1 call 16\n{"verb":"hello"}'
HOOK = b"AW1 hook script stop 0\n"


@pytest.fixture
def person() -> Iterator[Person]:
    need_other_uid()
    with another_person() as made:
        yield made


@pytest.fixture
def myself() -> Iterator[Person]:
    need_program("setpriv")
    with ourselves() as made:
        yield made


async def in_a_terminal(person: Person) -> int:
    return await person.in_a_terminal()


async def in_the_background(person: Person) -> int:
    return await person.in_the_background()


async def a_server_alone(person: Person) -> int:
    return await person.a_server_alone()


@pytest.mark.parametrize("begin", [in_a_terminal, in_the_background, a_server_alone])
async def test_a_bridge_leaves_no_core_and_hides_its_memory_however_it_is_started(
    myself: Person, begin: Callable[[Person], Coroutine[None, None, int]]
) -> None:
    pid = await begin(myself)

    answer = myself.run(sys.executable, "-c", LOOK, str(pid))
    seen = dict(line.split() for line in answer.stdout.splitlines())
    limits = Path(f"/proc/{pid}/limits").read_text().splitlines()
    (core,) = [line.split() for line in limits if line.startswith("Max core")]

    assert core[4:6] == ["0", "0"]
    assert seen.pop("cmdline") == "10", answer.stderr
    assert seen.pop("ptrace") == "-1"
    assert set(seen.values()) == {"PermissionError"}


async def test_a_process_that_is_not_shielded_shows_all_of_that(myself: Person) -> None:
    """So that the test above sees what it says it sees."""
    sleeper = subprocess.Popen(
        [*myself.become, "cat"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    )
    with sleeper:
        answer = myself.run(sys.executable, "-c", LOOK, str(sleeper.pid))
        sleeper.communicate()

    assert "PermissionError" not in answer.stdout
    assert "ptrace 0" in answer.stdout


async def test_root_gets_nothing_of_another_persons_bridge(person: Person) -> None:
    pid = await person.in_a_terminal()

    for words in (HELLO, HOOK, b"AW1 mcp script 0\n"):
        for _ in range(3):
            assert knock(person.paths.run, words) == b""
    own = person.agentworks("bridge", "status")

    assert own.returncode == 0, own
    assert f"pid {pid}" in own.stdout
    record = (person.home / "record").read_text()
    assert record.count('"peer_rejected"') == 1
    assert "other_user" in record


def knock(run: Path, words: bytes) -> bytes:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(10)
        client.connect(f"{run}/bridge.sock")
        try:
            client.sendall(words)
            return client.recv(100)
        except (BrokenPipeError, ConnectionResetError):
            return b""


async def test_roots_own_command_refuses_a_folder_of_another_person(
    person: Person,
) -> None:
    await person.in_a_terminal()
    environment = {**person.environment, "AGENTWORKS_STATE": str(person.paths.state)}

    answer = subprocess.run(
        [sys.executable, "-P", "-m", "bridge", "bridge", "status"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert answer.returncode == 78
    assert "belongs to uid 65534" in answer.stderr
    assert answer.stdout == ""
