"""A daemon of one answer, in a thread: what a command's client meets."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

Answer = Callable[[socket.socket], object]


@contextmanager
def answering(folder: Path, answer: Answer) -> Iterator[None]:
    """Listen on `folder`/bridge.sock and give each client to `answer`, in turn."""
    with socket.socket(socket.AF_UNIX) as listening:
        before = os.open(".", os.O_RDONLY)
        os.chdir(folder)  # the path may be longer than an address
        listening.bind("bridge.sock")
        os.fchdir(before)
        os.close(before)
        listening.listen()

        def serve() -> None:
            while True:
                try:
                    client, _ = listening.accept()
                except OSError:
                    return
                with client:
                    answer(client)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()
            (folder / "bridge.sock").unlink()


def reply(body: bytes) -> Answer:
    """Read one call, then answer with this body."""

    def answer(client: socket.socket) -> None:
        if read_call(client):
            client.sendall(b"AW1 reply %d\n%b" % (len(body), body))

    return answer


def read_call(client: socket.socket) -> bytes:
    """The body of one `call` frame; empty from a client that only looked."""
    with client.makefile("rb") as stream:
        header = stream.readline()
        return stream.read(int(header.split()[-1])) if header else b""
