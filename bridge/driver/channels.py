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
from bridge.local.wire import Header
from bridge.providers import claude, claude_channels, process
from bridge.routes.claude_channel import ROUTE, Channel, Port

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
        """The child is gone: mail goes other ways."""
        bridge, key = self._bridge, self._key
        if self._channel is None or bridge.channels.get(key) is not self._channel:
            return
        del bridge.channels[key]
        for queue in bridge.roster.of_process(key):
            way = queue.native.way
            if way is not None and way.route == ROUTE:
                bridge.start(natives.drop, bridge, queue, way)


def heard_answer(bridge: Bridge, key: ProcessKey, verb: str) -> None:
    """The agent acknowledged or answered: its channel may be proven by that."""
    if verb in _ANSWERS and key in bridge.channels:
        _look(bridge, key)


def _look(bridge: Bridge, key: ProcessKey) -> None:
    for queue in bridge.roster.of_process(key):
        bridge.start(natives.look, bridge, queue)
