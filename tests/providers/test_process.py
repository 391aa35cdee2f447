"""Processes as the kernel shows them, with real ones of every odd kind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio
import trio.testing

from bridge.core.caller import ProcessFacts
from bridge.core.records import ProcessKey, process_key
from bridge.providers import process_psutil
from bridge.providers.process import (
    MARKS,
    ancestry_of,
    boot_id,
    facts_of,
    is_alive,
    key_of,
    marks_of,
    wait_gone,
)
from tests.fakes.descriptors import no_descriptor

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


class Child:
    """A process that says a line when it is ready and ends with its stdin."""

    def __init__(self, program: str, *arguments: str, **environment: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-IS", "-c", program, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={"PATH": os.environ["PATH"], **environment},
        )
        self.pid = self.process.pid

    def said(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


WAIT = "import sys; print('ready', flush=True); sys.stdin.read()"


@pytest.fixture
def children() -> Iterator[list[Child]]:
    started: list[Child] = []
    yield started
    for child in started:
        child.end()


@pytest.fixture
def child(children: list[Child]) -> Child:
    one = Child(WAIT, "an argument", "")
    children.append(one)
    assert one.said() == "ready"
    return one


def facts(pid: int) -> ProcessFacts:
    found = facts_of(pid)
    assert found is not None
    return found


# ---- one process --------------------------------------------------------------


def test_the_facts_of_a_child_are_its_own(child: Child) -> None:
    found = facts(child.pid)

    assert found.pid == child.pid
    assert found.parent_pid == os.getpid()
    assert found.uid == os.geteuid()
    assert Path(found.program).samefile(sys.executable)
    assert found.arguments[1:3] == ("-IS", "-c")
    assert found.arguments[-2:] == ("an argument", "")
    assert found.start >= facts(os.getpid()).start


def test_there_are_no_facts_of_nobody() -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()

    assert facts_of(gone.pid) is None
    assert marks_of(gone.pid) is None


@linux_only
def test_a_zombie_is_nobody(child: Child) -> None:
    key = key_of(facts(child.pid))
    os.kill(child.pid, signal.SIGKILL)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)

    assert facts_of(child.pid) is None
    assert not is_alive(key)


@linux_only
@pytest.mark.parametrize(
    "name", [") (", "a) R 1 2 3", "x y", "line\nline", "(((", ")", "ü)"]
)
def test_a_name_of_any_kind_hides_nothing(children: list[Child], name: str) -> None:
    program = (
        "import ctypes, sys; "
        "ctypes.CDLL(None).prctl(15, sys.argv[1].encode(), 0, 0, 0); "
        "print('ready', flush=True); sys.stdin.read()"
    )
    child = Child(program, name)
    children.append(child)
    assert child.said() == "ready"

    found = facts(child.pid)

    assert found.name == name
    assert found.parent_pid == os.getpid()
    assert found.start >= facts(os.getpid()).start


@linux_only
def test_a_replaced_program_keeps_its_path(
    children: list[Child], tmp_path: Path
) -> None:
    copy = tmp_path / "agent"
    copy.write_bytes(Path("/bin/sleep").read_bytes())
    copy.chmod(0o700)
    process = subprocess.Popen([copy, "60"])
    try:
        copy.unlink()
        assert facts(process.pid).program == str(copy)
    finally:
        process.kill()
        process.wait()


@linux_only
def test_an_exec_keeps_the_process_and_changes_the_program(
    children: list[Child],
) -> None:
    child = Child(
        "import os; print('ready', flush=True); os.read(0, 3); "
        "os.execv('/bin/cat', ['cat'])"
    )
    children.append(child)
    assert child.said() == "ready"
    before = facts(child.pid)
    assert child.process.stdin is not None

    child.process.stdin.write("go\nechoed by cat\n")
    child.process.stdin.flush()
    assert child.said() == "echoed by cat"

    after = facts(child.pid)
    assert key_of(after) == key_of(before)
    assert is_alive(key_of(before))
    assert after.program != before.program


@linux_only
def test_a_long_command_line_is_cut(children: list[Child]) -> None:
    child = Child(WAIT, "x" * 100_000)
    children.append(child)
    assert child.said() == "ready"

    assert sum(map(len, facts(child.pid).arguments)) <= 16 * 1024


@linux_only
def test_bytes_that_are_no_text_are_shown_as_such(children: list[Child]) -> None:
    child = Child(WAIT, "\udcff\udcfe")
    children.append(child)
    assert child.said() == "ready"

    assert facts(child.pid).arguments[-1] == "\ufffd\ufffd"


# ---- parents ------------------------------------------------------------------


def test_our_own_chain_is_whole_and_ends_at_the_top() -> None:
    ancestry = ancestry_of(os.getpid())

    assert ancestry.whole, ancestry.reason
    assert ancestry.chain[0].pid == os.getpid()
    assert ancestry.chain[-1].parent_pid == 0
    pairs = zip(ancestry.chain, ancestry.chain[1:], strict=False)
    assert all(below.parent_pid == above.pid for below, above in pairs)


def test_a_chain_has_everyone_between(children: list[Child]) -> None:
    program = (
        "import subprocess, sys; child = subprocess.Popen([sys.executable, '-IS', "
        "'-c', 'import sys; sys.stdin.read()']); print(child.pid, flush=True); "
        "child.wait()"
    )
    child = Child(program)
    children.append(child)
    grandchild = int(child.said())

    chain = ancestry_of(grandchild).chain

    assert [each.pid for each in chain[:3]] == [grandchild, child.pid, os.getpid()]


def test_the_chain_of_nobody_is_not_whole() -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()

    ancestry = ancestry_of(gone.pid)

    assert not ancestry.whole
    assert ancestry.chain == ()
    assert str(gone.pid) in ancestry.reason


def seen(pid: int, parent_pid: int, start: int) -> ProcessFacts:
    return ProcessFacts(pid, parent_pid, start, name="x", uid=1)


def test_a_parent_younger_than_its_child_breaks_the_chain() -> None:
    kernel = {30: seen(30, 20, 900), 20: seen(20, 1, 901), 1: seen(1, 0, 1)}

    ancestry = ancestry_of(30, kernel.get)

    assert not ancestry.whole
    assert ancestry.chain == (kernel[30],)
    assert "20 started after its child 30" in ancestry.reason


def test_a_parent_of_the_same_tick_is_a_parent() -> None:
    kernel = {30: seen(30, 1, 900), 1: seen(1, 0, 900)}

    assert ancestry_of(30, kernel.get).whole


def test_a_parent_that_went_during_the_walk_breaks_the_chain() -> None:
    kernel = {30: seen(30, 20, 900)}

    ancestry = ancestry_of(30, kernel.get)

    assert not ancestry.whole
    assert ancestry.chain == (kernel[30],)
    assert "20 has gone" in ancestry.reason


def test_a_chain_without_an_end_is_not_walked_for_ever() -> None:
    kernel = {30: seen(30, 31, 900), 31: seen(31, 30, 900)}

    ancestry = ancestry_of(30, kernel.get)

    assert not ancestry.whole
    assert "more than" in ancestry.reason


@linux_only
def test_a_dead_parent_is_not_in_the_chain_of_its_child(children: list[Child]) -> None:
    program = (
        "import os, subprocess, sys; child = subprocess.Popen([sys.executable, '-IS', "
        "'-c', 'import sys; print(\"here\", flush=True); sys.stdin.read()']); "
        "print(child.pid, flush=True); sys.stdout.close(); os._exit(0)"
    )
    parent = Child(program)
    children.append(parent)
    lines = {parent.said(), parent.said()}
    orphan = int((lines - {"here"}).pop())
    os.waitid(os.P_PID, parent.pid, os.WEXITED | os.WNOWAIT)

    ancestry = ancestry_of(orphan)

    assert ancestry.chain[0].pid == orphan
    assert parent.pid not in [each.pid for each in ancestry.chain]


@linux_only
def test_a_child_in_a_pid_namespace_of_its_own_has_its_whole_chain(
    children: list[Child],
) -> None:
    process = subprocess.Popen(
        ["unshare", "--pid", "--fork", "sh", "-c", "echo ready; read line"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        if process.stdout.readline() != "ready\n":
            pytest.skip("unshare --pid is not allowed here")
        inside = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
        ancestry = ancestry_of(int(inside))

        assert ancestry.whole
        assert [each.pid for each in ancestry.chain[1:3]] == [process.pid, os.getpid()]
    finally:
        process.communicate("\n")


LAST_PID = Path("/proc/sys/kernel/ns_last_pid")


@linux_only
def test_a_reused_pid_is_another_process() -> None:
    if not os.access(LAST_PID, os.W_OK):
        pytest.skip("choosing the next pid is not allowed here")
    first = subprocess.Popen(["sleep", "60"])
    key = key_of(facts(first.pid))
    first.kill()
    first.wait()
    wait_for_next_tick(key.start)
    second = start_with_pid(first.pid)
    try:
        assert facts(second.pid).pid == key.pid
        assert not is_alive(key)
    finally:
        second.kill()
        second.wait()


def wait_for_next_tick(start: int) -> None:
    """Until a process that starts now has another start than `start`."""
    while int(time.clock_gettime(time.CLOCK_BOOTTIME) * 100) <= start:
        os.sched_yield()


def start_with_pid(pid: int) -> subprocess.Popen[bytes]:
    """A process with that pid; others may be faster, so it is tried again."""
    for _ in range(50):
        LAST_PID.write_text(str(pid - 1))
        process = subprocess.Popen(["sleep", "60"])
        if process.pid == pid:
            return process
        process.kill()
        process.wait()
    pytest.skip("the pid was taken by others every time")


# ---- marks ----------------------------------------------------------------------


def test_marks_are_chosen_from_the_environment_at_its_start(
    children: list[Child],
) -> None:
    child = Child(
        WAIT,
        CODEX_THREAD_ID="t-1",
        CLAUDECODE="1",
        HOME="/home/me",
        OPENAI_API_KEY="cnry-secret",
        CODEX_THREAD_ID_MORE="x",
    )
    children.append(child)
    assert child.said() == "ready"

    assert marks_of(child.pid) == {
        "CODEX_THREAD_ID": "t-1",
        "CLAUDECODE": "1",
        "HOME": "/home/me",
    }


def test_no_mark_has_a_name_that_holds_secrets() -> None:
    words = ("KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL")

    assert not [mark for mark in MARKS if any(word in mark for word in words)]


@linux_only
def test_a_large_environment_is_read_whole(children: list[Child]) -> None:
    filler = {f"FILLER_{number}": "x" * 100_000 for number in range(8)}
    child = Child(WAIT, **filler, CODEX_THREAD_ID="t-1")
    children.append(child)
    assert child.said() == "ready"

    assert marks_of(child.pid) == {"CODEX_THREAD_ID": "t-1"}


@linux_only
def test_an_environment_over_the_limit_is_unreadable(children: list[Child]) -> None:
    filler = {f"FILLER_{number}": "x" * 100_000 for number in range(12)}
    child = Child(WAIT, **filler, CODEX_THREAD_ID="t-1")
    children.append(child)
    assert child.said() == "ready"

    assert marks_of(child.pid) is None


@linux_only
def test_the_environment_of_another_user_is_unreadable() -> None:
    if os.geteuid() != 0:
        assert marks_of(1) is None
        return
    program = (
        "from bridge.providers.process import marks_of, facts_of; import os; "
        "print(marks_of(os.getppid()), facts_of(os.getppid()).program == '')"
    )
    root = Path(__file__).resolve().parents[2]
    drop = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    answer = subprocess.run(
        [*drop, sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(root)},
        check=False,
    )
    if answer.returncode != 0:
        pytest.skip("another user cannot read this checkout or this Python")

    assert answer.stdout.split() == ["None", "True"]


@linux_only
def test_a_process_that_hides_grants_nothing(children: list[Child]) -> None:
    program = (
        "import ctypes, sys; ctypes.CDLL(None).prctl(4, 0, 0, 0, 0); "
        "print('ready', flush=True); sys.stdin.read()"
    )
    child = Child(program, CODEX_THREAD_ID="t-1")
    children.append(child)
    assert child.said() == "ready"

    assert facts(child.pid).uid == os.geteuid()
    if os.geteuid() != 0:
        assert marks_of(child.pid) is None


# ---- keys ------------------------------------------------------------------------


def test_a_key_lives_as_long_as_its_process(child: Child) -> None:
    key = key_of(facts(child.pid))
    assert is_alive(key)
    assert process_key(key.text()) == key

    child.end()

    assert not is_alive(key)


def test_the_same_pid_and_start_after_a_restart_is_another_process() -> None:
    key = key_of(facts(os.getpid()))

    assert key.boot_id == boot_id()
    assert not is_alive(ProcessKey("another boot", key.pid, key.start))


def test_the_same_pid_with_another_start_is_another_process() -> None:
    key = key_of(facts(os.getpid()))

    assert not is_alive(ProcessKey(key.boot_id, key.pid, key.start + 1))


async def test_the_end_of_a_process_is_waited_for(child: Child) -> None:
    key = key_of(facts(child.pid))
    with trio.fail_after(10):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait_gone, key)
            await trio.testing.wait_all_tasks_blocked()
            assert len(nursery.child_tasks) == 1
            os.kill(child.pid, signal.SIGKILL)


async def test_a_process_that_is_gone_is_not_waited_for(child: Child) -> None:
    key = key_of(facts(child.pid))
    child.end()

    with trio.fail_after(1):
        await wait_gone(key)


async def test_a_reused_pid_is_gone() -> None:
    key = key_of(facts(os.getpid()))

    with trio.fail_after(1):
        await wait_gone(ProcessKey(key.boot_id, key.pid, key.start - 1))


async def test_who_cannot_be_looked_at_just_now_is_not_gone(
    child: Child, mock_clock: trio.testing.MockClock
) -> None:
    key = key_of(facts(child.pid))
    async with trio.open_nursery() as nursery:
        with no_descriptor():
            nursery.start_soon(wait_gone, key)
            await trio.testing.wait_all_tasks_blocked()
            mock_clock.jump(10)
            await trio.testing.wait_all_tasks_blocked()
            assert len(nursery.child_tasks) == 1
        mock_clock.jump(10)
        await trio.testing.wait_all_tasks_blocked()
        assert len(nursery.child_tasks) == 1
        child.end()
        mock_clock.jump(10)


async def test_a_wait_can_be_cancelled(child: Child) -> None:
    before = len(os.listdir("/dev/fd"))
    with trio.move_on_after(0.01):
        await wait_gone(key_of(facts(child.pid)))

    assert len(os.listdir("/dev/fd")) == before


# ---- elsewhere --------------------------------------------------------------------


def test_psutil_gives_the_same_facts(child: Child) -> None:
    found = process_psutil.read_facts(child.pid)
    assert found is not None

    ours = facts(child.pid)
    assert (found.pid, found.parent_pid, found.uid) == (
        ours.pid,
        ours.parent_pid,
        ours.uid,
    )
    assert (found.program, found.arguments) == (ours.program, ours.arguments)
    assert found.start == process_psutil.read_start(child.pid)


def test_psutil_gives_nothing_of_nobody() -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()

    assert process_psutil.read_facts(gone.pid) is None
    assert process_psutil.read_start(gone.pid) is None
    assert process_psutil.read_variables(gone.pid, MARKS) is None


def test_psutil_gives_the_same_marks(children: list[Child]) -> None:
    child = Child(WAIT, CODEX_THREAD_ID="t-1", OTHER="x")
    children.append(child)
    assert child.said() == "ready"

    assert process_psutil.read_variables(child.pid, MARKS) == marks_of(child.pid)
    assert process_psutil.boot_id() == process_psutil.boot_id()
