"""The channels that are open now, each of one program's MCP child.

Promises that only a child which was started as one, by a Claude Code that was
itself started to take our channel, is one; that it is its program's and of no
chat, which is looked up each time; and that it ends with its connection.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from bridge.core.caller import ChildCaller, Nobody
from bridge.core.records import ProcessKey
from bridge.driver import natives
from bridge.driver.bridge import Bridge
from bridge.driver.queue import AttachmentQueue
from bridge.local.wire import Header
from bridge.providers import claude, claude_channels, process
from bridge.routes.claude_channel import Channel, ClaudeChannel, Port
from bridge.routes.way import Way

_WORD = "channel"
_ANSWERS = ("ack", "reply")


def is_asked_for(header: Header, caller: ChildCaller | Nobody) -> bool:
    """Was this child started to push, and will its host let it?"""
    return (
        _WORD in header.more
        and isinstance(caller, ChildCaller)
        and caller.provider == claude.NAME
        and claude_channels.takes_ours(caller.process.arguments)
    )


@contextmanager
def opening(bridge: Bridge, caller: ChildCaller | Nobody) -> Iterator[Opened]:
    """Where a child's session says that it may be pushed to; ends with it."""
    assert isinstance(caller, ChildCaller)  # noqa: S101 - is_asked_for said so
    opened = Opened(bridge, process.key_of(caller.process))
    try:
        yield opened
    finally:
        opened.close()


class Opened:
    """One child's channel, from its handshake to its end."""

    def __init__(self, bridge: Bridge, key: ProcessKey) -> None:
        self._bridge = bridge
        self._key = key
        self._channel: Channel | None = None

    def __call__(self, port: Port) -> None:
        """The host may be pushed to; of several children of a program the last."""
        self._channel = self._bridge.channels[self._key] = Channel(port)
        _look(self._bridge, self._key)

    def close(self) -> None:
        """The child is gone: mail goes other ways, a newer child's among them."""
        bridge, key = self._bridge, self._key
        if bridge.channels.get(key) is self._channel:
            bridge.channels.pop(key, None)
        for queue in bridge.roster.of_process(key):
            way = queue.native.way
            if isinstance(way, ClaudeChannel) and way.goes_by(self._channel):
                bridge.start(_leave, bridge, queue, way)


async def _leave(bridge: Bridge, queue: AttachmentQueue, way: Way) -> None:
    await natives.drop(bridge, queue, way)
    await natives.look(bridge, queue)


def heard_answer(bridge: Bridge, key: ProcessKey, verb: str) -> None:
    """The agent acknowledged or answered: its channel may be proven by that."""
    if verb in _ANSWERS and key in bridge.channels:
        _look(bridge, key)


def _look(bridge: Bridge, key: ProcessKey) -> None:
    for queue in bridge.roster.of_process(key):
        bridge.start(natives.look, bridge, queue)
