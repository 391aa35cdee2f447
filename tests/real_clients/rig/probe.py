"""A hook that notes what its host told it, and then does as it was told.

Run by a real client as `python3 -I -S probe.py FOLDER LABEL`. Owns one note per
run in FOLDER; uses up one act, `LABEL.act.*.json` in name order, if there is one:
{"stdout", "stderr", "exit", "hang_s", "freeze"}. Standard library only.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any


def ancestry() -> list[dict[str, Any]]:
    """This process and its parents: pid, session, program, arguments."""
    chain, pid = [], os.getpid()
    while pid > 0:
        stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[:-1]
        try:
            program = str(Path(f"/proc/{pid}/exe").readlink())
        except OSError:
            program = ""
        chain.append(
            {
                "pid": pid,
                "session": int(stat[3]),
                "start": int(stat[19]),
                "program": program,
                "arguments": [os.fsdecode(argument) for argument in arguments],
            }
        )
        pid = int(stat[1])
    return chain


def take_act(folder: Path, label: str) -> dict[str, Any]:
    """The next act for this label, used up; or an empty one."""
    for act in sorted(folder.glob(f"{label}.act.*.json")):
        taken = act.with_suffix(".used")
        try:
            act.rename(taken)
        except FileNotFoundError:  # another run was quicker
            continue
        return dict(json.loads(taken.read_text()))
    return {}


def main() -> int:
    """Note, then act."""
    folder, label = Path(sys.argv[1]), sys.argv[2]
    note = {
        "label": label,
        "stdin": json.loads(sys.stdin.read() or "{}"),
        "environment": dict(os.environ),
        "folder": str(Path.cwd()),
        "ancestry": ancestry(),
    }
    name = f"{label}.{time.monotonic_ns():020d}.note"
    fresh = folder / f"{name}.new"
    fresh.write_text(json.dumps(note))
    fresh.rename(folder / name)
    act = take_act(folder, label)
    if act.get("freeze"):
        os.kill(os.getpid(), signal.SIGSTOP)
    time.sleep(act.get("hang_s", 0))
    sys.stdout.write(act.get("stdout", ""))
    sys.stderr.write(act.get("stderr", ""))
    return int(act.get("exit", 0))


if __name__ == "__main__":
    sys.exit(main())
