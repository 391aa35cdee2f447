"""An MCP server over stdio that notes what its host told it.

Run by a real client as `python3 -I -S probe_mcp.py FOLDER`. Owns `mcp.PID.jsonl`
in FOLDER: the start (environment, ancestry), then every message received. Shows
one tool, `note`, which answers "noted". Standard library only.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from pathlib import Path
from typing import Any

_TOOL = {
    "name": "note",
    "description": "Notes that it was called.",
    "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}},
    "annotations": {"readOnlyHint": True},
}


def result(message: dict[str, Any]) -> dict[str, Any] | None:
    """What a request is answered with, or None for "method not found"."""
    method = message["method"]
    if method == "initialize":
        return {
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "probe", "version": "0"},
        }
    if method == "tools/list":
        return {"tools": [_TOOL]}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": "noted"}]}
    return {} if method == "ping" else None


def reply(message: dict[str, Any]) -> dict[str, Any]:
    """The JSON-RPC reply to one request."""
    found = result(message)
    head = {"jsonrpc": "2.0", "id": message["id"]}
    if found is None:
        return {**head, "error": {"code": -32601, "message": "method not found"}}
    return {**head, "result": found}


def main() -> None:
    """Serve until the host closes our stdin."""
    place = Path(__file__).with_name("probe.py")
    found = importlib.util.spec_from_file_location("probe", place)
    assert found is not None
    assert found.loader is not None
    probe = importlib.util.module_from_spec(found)
    found.loader.exec_module(probe)
    notes = Path(sys.argv[1]) / f"mcp.{os.getpid()}.jsonl"
    with notes.open("a", buffering=1) as log:
        start = {"environment": dict(os.environ), "ancestry": probe.ancestry()}
        log.write(json.dumps(start) + "\n")
        for line in sys.stdin:
            message = json.loads(line)
            log.write(json.dumps(message) + "\n")
            if "id" in message and "method" in message:
                sys.stdout.write(json.dumps(reply(message)) + "\n")
                sys.stdout.flush()


if __name__ == "__main__":
    main()
