"""A long-lived script that runs what is measured as its own children, and times it.

One JSON request on each line of standard input, one answer on each line of
standard output:

    {"measure": {label: {"command": [...], "environment": {...}}}, "rounds": N,
     "stdin": "..."}            milliseconds of every run, by label, and the output
                                of the last run of each
    {"commit": {"path", "create", "row", "first"}, "rounds": N}
                                milliseconds of one synced commit of such a row
    {"child": [...], "lines": [...]}
                                start an MCP child, send it lines, wait for as many
                                answers as it owes; its pid

A run is posix_spawn of the absolute program and waitpid, from before the one until
after the other; output goes to a file. It imports only the standard library, so
that what it forks from is small.
"""

import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from typing import Any

_children: list[subprocess.Popen[bytes]] = []
_databases: dict[str, sqlite3.Connection] = {}


def main() -> None:
    """Serve until standard input ends."""
    for line in sys.stdin:
        asked = json.loads(line)
        if "measure" in asked:
            answer: dict[str, Any] = _measure(asked)
        elif "commit" in asked:
            answer = _commit(asked)
        else:
            answer = _start_child(asked)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
    for child in _children:
        child.kill()


def _measure(asked: dict[str, Any]) -> dict[str, Any]:
    commands = list(asked["measure"].items())
    samples: dict[str, list[float]] = {label: [] for label, _ in commands}
    printed: dict[str, str] = {}
    ended = 0
    with tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile() as stdout:
        stdin.write(asked.get("stdin", "").encode())
        stdin.flush()
        for turn in range(asked["rounds"]):
            # Each comes first and last, after the one and after the other, so that
            # drift and what a neighbour leaves behind cancel.
            start = turn % len(commands)
            order = commands[start:] + commands[:start]
            for label, run in order if turn % 2 else reversed(order):
                os.lseek(stdin.fileno(), 0, os.SEEK_SET)
                os.ftruncate(stdout.fileno(), 0)
                os.lseek(stdout.fileno(), 0, os.SEEK_SET)
                took, ended = _run(run, stdin.fileno(), stdout.fileno())
                samples[label].append(took)
                text = os.pread(stdout.fileno(), 1 << 20, 0)
                printed[label] = text.decode("utf-8", "replace")
    return {"samples": samples, "printed": printed, "ended_ns": ended}


def _run(run: dict[str, Any], stdin: int, stdout: int) -> tuple[float, int]:
    """Milliseconds, and when it had ended."""
    command, environment = run["command"], run.get("environment", {})
    places = [(os.POSIX_SPAWN_DUP2, stdin, 0), (os.POSIX_SPAWN_DUP2, stdout, 1)]
    began = time.perf_counter_ns()
    pid = os.posix_spawn(command[0], command, environment, file_actions=places)
    _, status = os.waitpid(pid, 0)
    ended = time.perf_counter_ns()
    if status != 0:
        raise SystemExit(f"{command} ended with {status}")
    return (ended - began) / 1e6, ended


def _commit(asked: dict[str, Any]) -> dict[str, Any]:
    said = asked["commit"]
    database = _opened(said["path"], said["create"])
    row = said["row"]
    holders = ", ".join("?" * len(row))
    samples = []
    for number in range(asked["rounds"]):
        fresh = [f"offer-{said['first'] + number:036d}", *row[1:]]
        began = time.perf_counter_ns()
        database.execute("BEGIN IMMEDIATE")
        database.execute(f"INSERT INTO offer VALUES ({holders})", fresh)
        database.execute("COMMIT")
        samples.append((time.perf_counter_ns() - began) / 1e6)
    return {"samples": samples}


def _opened(path: str, create: str) -> sqlite3.Connection:
    """Opened once: the first commit into a new log is a dearer one."""
    if path not in _databases:
        database = sqlite3.connect(path, isolation_level=None)
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("PRAGMA synchronous=FULL")
        database.execute(create)
        _databases[path] = database
    return _databases[path]


def _start_child(asked: dict[str, Any]) -> dict[str, Any]:
    child = subprocess.Popen(
        asked["child"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={}
    )
    _children.append(child)
    assert child.stdin is not None
    assert child.stdout is not None
    answers = []
    for line in asked["lines"]:
        child.stdin.write(line.encode() + b"\n")
        child.stdin.flush()
        if "id" in json.loads(line):
            answers.append(json.loads(child.stdout.readline()))
    return {"pid": child.pid, "answers": answers}


if __name__ == "__main__":
    main()
