"""A command's side of the socket: one question, one answer, plain and blocking.

Promises that only a daemon of our own uid in our own private folder is asked,
however long its path; that every wait has a deadline; and that what went wrong
is said in a way that tells what to do. Imports no event loop, since every
command pays for its imports.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from bridge.clock import Clock, SystemClock
from bridge.core import texts
from bridge.errors import (
    EXIT_UNREACHABLE,
    BridgeError,
    Invalid,
    Refused,
    Unavailable,
    Unknown,
)
from bridge.local.replies import decode_reply
from bridge.local.requests import READS, Request, encode_request
from bridge.local.wire import Incoming, format_frame
from bridge.paths import Paths, open_private_folder
from bridge.peer import peer_of

CONNECT_S = 2.0
ANSWER_S = 10.0
_REPLY_LIMIT = 32 * 1024 * 1024  # bytes
_CHUNK = 64 * 1024
# Codex sets it for what it runs without network; its sandbox then answers any
# connect with EPERM, or hides the socket.
_SANDBOX_VARIABLE = "CODEX_SANDBOX_NETWORK_DISABLED"
_NOBODY_LISTENS = {errno.ENOENT, errno.ECONNREFUSED}
_FORBIDDEN = {errno.EPERM, errno.EACCES}


def call(
    paths: Paths,
    request: Request,
    answer_s: float = ANSWER_S,
    clock: Clock | None = None,
) -> bytes:
    """Ask the daemon; the JSON text of its `ok`.

    Raises what the daemon refused with; Unavailable (`bridge_not_running`, exit
    75) when nobody listens; Unknown when the daemon took the request and went
    away or said nothing for `answer_s` seconds (Unavailable if it only reads).
    """
    clock = clock or SystemClock()
    by = clock.running() + answer_s
    frame = format_frame("call", body=encode_request(request))
    with _connected(paths) as connected:
        try:
            _send(connected, frame, answer_s)
            return decode_reply(_receive(connected, by, clock))
        except TimeoutError as error:
            raise _no_answer(request, "did not answer in time") from error
        except EOFError as error:
            raise _no_answer(request, "ended before it answered") from error


def _send(connected: socket.socket, frame: bytes, within_s: float) -> None:
    connected.settimeout(within_s)
    # It may have closed before it read everything, and have said why.
    with suppress(BrokenPipeError, ConnectionResetError):
        connected.sendall(frame)


def _receive(connected: socket.socket, by: float, clock: Clock) -> bytes:
    incoming = Incoming()
    header = None
    while True:
        header = header or incoming.take_header()
        if header is not None:
            if header.verb != "reply" or header.length > _REPLY_LIMIT:
                raise Invalid(
                    "not_a_bridge",
                    "What answered is not this version's bridge.",
                    "Restart it: agentworks bridge restart",
                )
            body = incoming.take_body(header.length)
            if body is not None:
                return body
        incoming.feed(_receive_some(connected, by - clock.running()))


def _receive_some(connected: socket.socket, left_s: float) -> bytes:
    if left_s <= 0:
        raise TimeoutError
    connected.settimeout(left_s)
    try:
        chunk = connected.recv(_CHUNK)
    except ConnectionResetError as error:
        raise EOFError from error
    if not chunk:
        raise EOFError
    return chunk


@contextmanager
def _connected(paths: Paths) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connected:
        connected.settimeout(CONNECT_S)
        try:
            with _inside(paths):
                connected.connect(paths.socket.name)
        except (OSError, TimeoutError) as error:
            raise _not_connected(error) from error
        _require_own_daemon(connected)
        yield connected


@contextmanager
def _inside(paths: Paths) -> Iterator[None]:
    """Stand in the run folder, so that no path is too long, and come back."""
    try:
        folder = open_private_folder(paths.run)
    except Refused as error:
        if error.code == "folder_missing":
            raise _nobody_listens() from error
        raise
    before = None
    try:
        before = _working_folder()
        os.fchdir(folder)
        yield
    finally:
        os.close(folder)
        if before is not None:
            os.fchdir(before)
            os.close(before)


def _working_folder() -> int | None:
    try:
        return os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return None  # it was removed or may not be read: then we stay where we are


def _require_own_daemon(connected: socket.socket) -> None:
    daemon = peer_of(connected)
    if daemon.uid != os.geteuid():
        raise Refused(
            "other_daemon",
            f"The socket belongs to a program of uid {daemon.uid}, not to your bridge.",
            "Stop that program, then: agentworks up",
            status=403,
        )


def _not_connected(error: OSError) -> BridgeError:
    if error.errno in _FORBIDDEN:
        return _sandboxed()
    if error.errno in _NOBODY_LISTENS:
        return _nobody_listens()
    return Unavailable(
        "bridge_busy",
        "The bridge is there but does not take a connection.",
        "Try again in a moment; if it stays so: agentworks bridge restart",
    )


def _nobody_listens() -> BridgeError:
    if _SANDBOX_VARIABLE in os.environ:
        return _sandboxed()
    return Unavailable("bridge_not_running", texts.bridge_not_running())


def _sandboxed() -> Refused:
    return Refused("sandboxed", texts.sandboxed(), exit_code=EXIT_UNREACHABLE)


def _no_answer(request: Request, what: str) -> BridgeError:
    if isinstance(request, READS):
        return Unavailable(
            "bridge_silent",
            f"The bridge {what}.",
            "Try again; if it stays so: agentworks bridge restart",
        )
    return Unknown(
        "bridge_silent",
        f"The bridge {what}, so this may or may not have happened.",
        "Look at it first: agentworks bridge status",
    )
