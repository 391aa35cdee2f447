"""Who is at the other end of a local socket, by the kernel's word.

Promises that a peer of another uid, root included, is refused, and so is one
whose process cannot be seen from here; a kernel that does not answer grants
nothing.
"""

from __future__ import annotations

import socket
import struct
import sys
from typing import Protocol

from msgspec import Struct

from bridge.errors import Refused

_LINUX_CREDENTIALS = struct.Struct("3i")  # pid, uid, gid
_MACOS_LEVEL = 0  # SOL_LOCAL
_MACOS_CREDENTIALS = 1  # LOCAL_PEERCRED
_MACOS_PID = 2  # LOCAL_PEERPID
_MACOS_XUCRED = struct.Struct("IIh2x16I")  # version, uid, group count, groups


class Peer(Struct, frozen=True):
    """The process that connected, as it was when it connected."""

    uid: int
    pid: int


class HasOptions(Protocol):
    """A socket, of the standard library or of trio."""

    def getsockopt(self, level: int, option: int, buffer_size: int, /) -> bytes:
        """See socket.getsockopt."""
        ...


def peer_of(connected: HasOptions) -> Peer:
    """The peer of a connected Unix socket; raises Refused if the kernel is silent."""
    try:
        if sys.platform == "darwin":
            return _macos_peer(connected)
        return _linux_peer(connected)
    except (OSError, struct.error) as error:
        raise Refused(
            "peer_unknown",
            "The kernel did not say who connected to the bridge.",
            "Connect through the bridge's own socket on this computer.",
        ) from error


def admit(peer: Peer, own_uid: int) -> None:
    """Raises Refused unless the peer is a visible process of our own uid."""
    if peer.uid != own_uid:
        raise Refused(
            "other_user",
            f"This bridge belongs to uid {own_uid} and serves nobody else.",
            "Run your own bridge: agentworks up",
            status=403,
        )
    if peer.pid <= 0:
        raise Refused(
            "other_container",
            "The bridge and this chat run in different containers, so the bridge"
            " cannot see which program is asking.",
            "Start the bridge in the chat's container: agentworks up",
            status=403,
        )


def _linux_peer(connected: HasOptions) -> Peer:
    size = _LINUX_CREDENTIALS.size
    answer = connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    pid, uid, _ = _LINUX_CREDENTIALS.unpack(answer)
    return Peer(uid=uid, pid=pid)


def _macos_peer(connected: HasOptions) -> Peer:
    size = _MACOS_XUCRED.size
    answer = connected.getsockopt(_MACOS_LEVEL, _MACOS_CREDENTIALS, size)
    uid = _MACOS_XUCRED.unpack(answer)[1]
    pid = struct.unpack("i", connected.getsockopt(_MACOS_LEVEL, _MACOS_PID, 4))[0]
    return Peer(uid=uid, pid=pid)
