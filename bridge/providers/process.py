"""Who is running: one process, its parents, its marks, and when it ends.

Owns the reading of processes. Promises that a chain of parents is called whole
only when nothing was missing in it and nobody in it started after its child;
that a process key fits one process for all time; and that a wait for its end
returns also when the pid already belongs to another.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet

import psutil
import trio

from bridge.core.caller import Ancestry, ProcessFacts
from bridge.core.records import ProcessKey

if sys.platform == "linux":
    from bridge.providers.process_linux import (
        boot_id,
        read_facts,
        read_start,
        read_variables,
    )
else:
    from bridge.providers.process_psutil import (
        boot_id,
        read_facts,
        read_start,
        read_variables,
    )

__all__ = [
    "ancestry_of",
    "boot_id",
    "facts_of",
    "is_alive",
    "key_of",
    "marks_of",
    "pids_of_user",
    "variables_of",
    "wait_gone",
]

Read = Callable[[int], ProcessFacts | None]

# Deeper chains are not a person's or an agent's; a loop would never end.
_DEPTH_LIMIT = 128
_POLL_S = 2.0

# What hosts put into the environment of what they start, and where their and our
# settings are. Names only that hold no secret.
MARKS = frozenset(
    {
        "AGENTWORKS_CONFIG",
        "AGENTWORKS_SESSION_ID",
        "AI_AGENT",
        "ANTIGRAVITY_AGENT",
        "ANTIGRAVITY_CONVERSATION_ID",
        "CLAUDECODE",
        "CLAUDE_CODE_CHILD_SESSION",
        "CLAUDE_CODE_ENTRYPOINT",
        "CLAUDE_CODE_EXECPATH",
        "CLAUDE_CODE_SESSION_ID",
        "CLAUDE_CONFIG_DIR",
        "CODEX_HOME",
        "CODEX_SANDBOX",
        "CODEX_SANDBOX_NETWORK_DISABLED",
        "CODEX_SESSION_ID",
        "CODEX_THREAD_ID",
        "CODEX_TOOL_CALL_ID",
        "COPILOT_AGENT_SESSION_ID",
        "COPILOT_CLI",
        "CURSOR_AGENT",
        "CURSOR_CONVERSATION_ID",
        "GEMINI_CLI",
        "GEMINI_SESSION_ID",
        "HOME",
        "MUSE_SESSION_ID",
        "OPENCODE",
        "OPENCODE_PID",
        "PI_CODING_AGENT",
        "PI_SESSION_FILE",
        "PI_SESSION_ID",
        "QWEN_CODE",
        "QWEN_CODE_SESSION_ID",
    }
)


def facts_of(pid: int) -> ProcessFacts | None:
    """What the kernel shows of a living process; None when there is none."""
    return read_facts(pid)


def ancestry_of(pid: int, read: Read = read_facts) -> Ancestry:
    """A process and its parents, up to the one that has none.

    `read` gives the facts of one pid at the moment it is asked.
    """
    chain: list[ProcessFacts] = []
    while len(chain) < _DEPTH_LIMIT:
        facts = read(pid)
        if facts is None:
            what = f"process {pid} has gone" if chain else f"there is no process {pid}"
            return Ancestry(tuple(chain), whole=False, reason=what)
        # Race: a parent ended, its child got another one, and the pid we read
        # before is somebody else's
        # (test_a_parent_younger_than_its_child_breaks_the_chain).
        if chain and facts.start > chain[-1].start:
            return Ancestry(
                tuple(chain),
                whole=False,
                reason=f"process {pid} started after its child {chain[-1].pid}",
            )
        chain.append(facts)
        pid = facts.parent_pid
        if pid == 0:
            return Ancestry(tuple(chain), whole=True)
    return Ancestry(
        tuple(chain), whole=False, reason=f"more than {_DEPTH_LIMIT} parents"
    )


def marks_of(pid: int) -> Mapping[str, str] | None:
    """The MARKS in the environment a process was started with.

    None when it cannot be read, which grants nothing.
    """
    return read_variables(pid, MARKS)


def variables_of(pid: int, names: AbstractSet[str]) -> Mapping[str, str] | None:
    """Other variables of that environment, such as secrets that a hook was given.

    None when it cannot be read.
    """
    return read_variables(pid, names)


def pids_of_user() -> list[int]:
    """The processes of this user, by their place in the process table."""
    own = os.geteuid()
    found = []
    for each in psutil.process_iter(["uids"]):
        uids = each.info["uids"]
        if uids is not None and uids.effective == own:
            found.append(each.pid)
    return sorted(found)


def key_of(facts: ProcessFacts) -> ProcessKey:
    """The key that fits this process and no other, also after a restart."""
    return ProcessKey(boot_id(), facts.pid, facts.start)


def is_alive(key: ProcessKey) -> bool:
    """True while exactly this process lives."""
    return key.boot_id == boot_id() and read_start(key.pid) == key.start


async def wait_gone(key: ProcessKey) -> None:
    """Return when exactly this process lives no more; at once if it does not."""
    watch = _open_watch(key.pid)
    try:
        # Race: the descriptor may be of a later process with the same pid, so
        # the key is compared after opening it (test_a_reused_pid_is_gone).
        if watch is not None and is_alive(key):
            await trio.lowlevel.wait_readable(watch)
            return
    finally:
        if watch is not None:
            trio.lowlevel.notify_closing(watch)
            os.close(watch)
    await trio.lowlevel.checkpoint()
    while not _is_gone(key):  # noqa: ASYNC110 - nothing here tells us: ask again
        await trio.sleep(_POLL_S)


def _is_gone(key: ProcessKey) -> bool:
    """Surely: where not even our own process can be read, nothing is known.

    (test_who_cannot_be_looked_at_just_now_is_not_gone)
    """
    return not is_alive(key) and read_start(os.getpid()) is not None


def _open_watch(pid: int) -> int | None:
    if sys.platform != "linux":
        return None
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None  # gone, or the kernel has none to give: then it is polled
