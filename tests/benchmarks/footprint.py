"""What lies in memory, and what an idle bridge costs.

Memory is PSS: what a process has for itself and its share of what it has with
others. Read from /proc: where there is none, these lines are missing, and without
root those of the bridge, which lets nobody look in.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path

import trio

from bridge.cli.demo_stage import NotSo, Script, open_stage
from bridge.clock import SystemClock
from tests.benchmarks.table import Row
from tests.benchmarks.workshop import Choice, Workshop

CHILD_MB, BRIDGE_MB, ALL_MB, IDLE_PERCENT = 12.0, 55.0, 150.0, 0.5
_CAN_READ = Path("/proc/self/smaps_rollup").exists()
_MCP = "2025-06-18"
_HANDSHAKE = (
    {
        "jsonrpc": "2.0",
        "id": 0,
        "method": "initialize",
        "params": {
            "protocolVersion": _MCP,
            "capabilities": {},
            "clientInfo": {"name": "benchmark", "version": "1"},
        },
    },
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
)


async def bridge_rows(shop: Workshop) -> list[Row]:
    """A bridge with two attachments to a separate server, after it has worked."""
    pid = shop.stage.bridge_pid
    if not _lets_us_look_in(pid):
        return []
    return [
        Row(
            "bridge, two attachments, server apart",
            pss_mb([pid]),
            "MB",
            BRIDGE_MB,
            f"PSS; RSS {rss_mb(pid):.1f} MB",
        )
    ]


async def embedded_rows(folder: Path, choice: Choice) -> list[Row]:
    """Everything embedded with two MCP children: memory, and idle time."""
    if not _CAN_READ:
        return []
    folder.mkdir(mode=0o700)
    async with open_stage(folder, SystemClock()) as stage:
        bridge = await stage.start_bridge("embedded")
        shop = Workshop(stage)
        children = [
            await _mcp_child(shop, await shop.worker(name))
            for name in ("erin", "frank")
        ]
        everything = [bridge, *children]
        await trio.sleep(max(0.0, choice.settle_s - choice.idle_s))
        before = processor_s(everything)
        await trio.sleep(choice.idle_s)
        used = processor_s(everything) - before
        child = Row(
            "MCP child",
            max(pss_mb([pid]) for pid in children),
            "MB",
            CHILD_MB,
            f"PSS; RSS {max(map(rss_mb, children)):.1f} MB",
        )
        idle = Row(
            "idle processor time, all of these",
            100 * used / choice.idle_s,
            "%",
            IDLE_PERCENT,
            f"of one processor over {choice.idle_s:.0f} s",
        )
        if not _lets_us_look_in(bridge):
            return [child, idle]
        together = Row(
            "all embedded, two MCP children",
            pss_mb(everything),
            "MB",
            ALL_MB,
            f"summed PSS after {choice.settle_s:.0f} s",
        )
        return [child, together, idle]


async def _mcp_child(shop: Workshop, script: Script) -> int:
    """An MCP child of this attached script that has listed its tools; its pid."""
    command = [str(shop.stage.paths.bin / "pipe"), "mcp", "script"]
    lines = [json.dumps(each) for each in _HANDSHAKE]
    answer = await script.say({"child": command, "lines": lines})
    tools = answer["answers"][-1].get("result", {}).get("tools", [])
    if not tools:
        raise NotSo(f"the MCP child listed no tools: {answer['answers']}")
    return int(answer["pid"])


def _lets_us_look_in(pid: int) -> bool:
    try:
        return bool(Path(f"/proc/{pid}/smaps_rollup").read_text())
    except OSError:
        return False


def pss_mb(pids: Iterable[int]) -> float:
    """The sum of what these processes hold, in MB of 1,000,000 bytes."""
    return sum(_kib(pid, "smaps_rollup", "Pss:") for pid in pids) * 1024 / 1e6


def rss_mb(pid: int) -> float:
    """What one process holds, shared pages counted whole."""
    return _kib(pid, "status", "VmRSS:") * 1024 / 1e6


def processor_s(pids: Iterable[int]) -> float:
    """Processor time of these processes so far, ended threads too, in seconds."""
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def _kib(pid: int, file: str, field: str) -> int:
    for line in Path(f"/proc/{pid}/{file}").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1])
    raise NotSo(f"/proc/{pid}/{file} has no {field}")
