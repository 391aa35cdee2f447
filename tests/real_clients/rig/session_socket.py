"""A Claude session's messaging socket, written to as another program would.

Owns that protocol: newline-delimited JSON, an authorisation line, then one line
per message; one way, nothing is ever answered.
"""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

from tests.real_clients.rig.processes import process_row


def write_to_session(sessions: Path, registration: dict[str, Any], text: str) -> None:
    """Put a text into a chat from outside.

    `registration` is the chat's file below `sessions`. What became of the text
    shows only in the chat.
    """
    pid = registration["pid"]
    row = process_row(pid)
    assert row is not None, "the chat is gone"
    assert str(row.start) == registration["procStart"], "another process by now"
    message = {"role": "user", "content": text}
    # A session id that is not the chat's own is dropped without a word.
    session_id = registration["sessionId"]
    line = {"type": "user", "session_id": session_id, "message": message}
    spoken = [*_authorisation(sessions, pid), line]
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(5)
        client.connect(registration["messagingSocketPath"])
        client.sendall("".join(json.dumps(part) + "\n" for part in spoken).encode())
        client.shutdown(socket.SHUT_WR)
        client.recv(1)  # end of file: it was read


def _authorisation(sessions: Path, pid: int) -> list[dict[str, Any]]:
    keys = sorted(sessions.glob(f"{pid}.*.key"))
    if not keys:
        return []
    token = json.loads(keys[0].read_text())["peerToken"]
    return [{"type": "auth", "token": token}]
