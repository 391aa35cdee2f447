"""A running process whose system calls are watched, or fail, or kill it.

Promises that the tracer is attached before the test goes on, and lets go of the
process, if it still lives, at the end.
"""

from __future__ import annotations

import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import trio

_ANSWER_S = 30.0
NOWHERE = Path("/dev/null")


@asynccontextmanager
async def traced(
    pid: int, *options: str, threads: bool = True, record: Path = NOWHERE
) -> AsyncIterator[None]:
    """strace with these options, on a process or only its main thread."""
    command = ["strace", *(["-f"] if threads else []), "-o", str(record)]
    tracer = await trio.lowlevel.open_process(
        [*command, *options, "-p", str(pid)], stderr=subprocess.PIPE
    )
    assert tracer.stderr is not None
    try:
        with trio.fail_after(_ANSWER_S):
            said = b""
            while b"attached" not in said:
                chunk = await tracer.stderr.receive_some()
                assert chunk, f"strace: {said.decode()}"
                said += chunk
        yield
    finally:
        with trio.CancelScope(shield=True), trio.move_on_after(_ANSWER_S):
            with suppress(ProcessLookupError):
                tracer.send_signal(signal.SIGINT)
            await tracer.wait()
        await tracer.stderr.aclose()
