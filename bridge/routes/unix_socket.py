"""A connection to another program's private Unix socket.

Owns the vetting. Promises that nothing is written to a socket that is not ours,
that lies in a folder which others may change, or at whose other end another
program listens than the one that was verified.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import trio

from bridge.errors import Refused, Unavailable
from bridge.peer import Peer, peer_of

CONNECT_S = 2.0
# What a system takes in one call; the zero at its end included.
PATH_LIMIT_BYTES = 103

IsExpected = Callable[[Peer], bool]


async def connect(path: str, is_expected: IsExpected) -> trio.SocketStream:
    """Connect to the socket at this absolute path within CONNECT_S.

    `is_expected` says whether the process that listens there is the one that was
    meant. A link is followed, and what it leads to is vetted. Raises Refused for a
    place that cannot be trusted, Unavailable when nobody answers.
    """
    place = vetted(path)
    with trio.move_on_after(CONNECT_S):
        try:
            stream = await trio.open_unix_socket(place)
        except OSError as error:
            raise _nobody(error.strerror or "no answer") from error
        try:
            _check(peer_of(stream.socket), is_expected)
        except BaseException:
            await trio.aclose_forcefully(stream)
            raise
        return stream
    raise _nobody("it took too long")


def _check(peer: Peer, is_expected: IsExpected) -> None:
    # Trio takes the kernel's "not now" of a full queue for a connection.
    if peer.pid <= 0:
        raise _nobody("it takes no connection now")
    if peer.uid != os.geteuid() or not is_expected(peer):
        raise _not_safe("another program listens there")


def vetted(path: str) -> str:
    """The real path of a socket of ours in a folder of ours; raises Refused."""
    if not path.startswith("/") or "\0" in path:
        raise _not_safe("its path is not absolute")
    try:
        place = Path(os.path.realpath(path))
        found, folder = place.lstat(), place.parent.lstat()
    except OSError as error:
        raise _nobody(error.strerror or "it is not there") from error
    if not stat.S_ISSOCK(found.st_mode) or found.st_uid != os.geteuid():
        raise _not_safe("it is no socket of yours")
    if folder.st_uid != os.geteuid() or folder.st_mode & 0o022:
        raise _not_safe("others may change the folder that it lies in")
    if len(os.fsencode(place)) > PATH_LIMIT_BYTES:
        raise _not_safe(f"its path is longer than {PATH_LIMIT_BYTES} bytes")
    return str(place)


def _not_safe(why: str) -> Refused:
    return Refused(
        "native_unsafe",
        f"The program's own socket was not used, since {why}.",
        "Messages still come by its hooks.",
    )


def _nobody(why: str) -> Unavailable:
    return Unavailable(
        "native_absent",
        f"The program's own socket does not answer ({why}).",
        "Messages still come by its hooks.",
    )
