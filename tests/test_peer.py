"""The kernel says who connected; only visible processes of our own uid stay."""

from __future__ import annotations

import os
import socket
import struct
import sys

import pytest

from bridge.errors import Refused
from bridge.peer import Peer, admit, peer_of


def test_the_kernel_names_our_own_process() -> None:
    one, other = socket.socketpair(socket.AF_UNIX)

    assert peer_of(one) == Peer(uid=os.geteuid(), pid=os.getpid())

    one.close()
    other.close()


def test_a_socket_without_credentials_grants_nothing() -> None:
    with socket.socket(socket.AF_UNIX) as closed:
        closed.close()

        with pytest.raises(Refused) as caught:
            peer_of(closed)

    assert caught.value.code == "peer_unknown"


class ShortAnswer:
    """A kernel that answers with too few bytes."""

    def getsockopt(self, level: int, option: int, buffer_size: int, /) -> bytes:
        return struct.pack("i", 1)


def test_half_an_answer_grants_nothing() -> None:
    with pytest.raises(Refused):
        peer_of(ShortAnswer())


@pytest.mark.skipif(sys.platform != "linux", reason="SO_PEERCRED is Linux's")
def test_an_unconnected_socket_is_not_us() -> None:
    with socket.socket(socket.AF_UNIX) as alone, pytest.raises(Refused):
        admit(peer_of(alone), os.geteuid())


@pytest.mark.parametrize("uid", [0, 1001, 65534, -1])
def test_another_uid_is_refused_and_root_is_another_uid(uid: int) -> None:
    with pytest.raises(Refused) as caught:
        admit(Peer(uid=uid, pid=10), own_uid=1000)

    assert caught.value.code == "other_user"


@pytest.mark.parametrize("pid", [0, -1])
def test_a_process_of_another_container_is_told_so(pid: int) -> None:
    with pytest.raises(Refused, match="different containers"):
        admit(Peer(uid=1000, pid=pid), own_uid=1000)


def test_our_own_process_is_admitted() -> None:
    admit(Peer(uid=1000, pid=77), own_uid=1000)
