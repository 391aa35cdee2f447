"""What the monitor of a chat waits for: that mail is there, and nothing of its text.

Promises that a watch ends within WATCH_S, tells of each waiting message at most
once to whoever goes on from where the last answer ended, and moves no receipt; and
that a chat whose person wants no waking is not woken by its monitor either.
"""

from __future__ import annotations

import trio

from bridge.core.records import DeliveryState
from bridge.core.visible import label
from bridge.driver.bridge import Bridge
from bridge.driver.queue import AttachmentQueue
from bridge.errors import EXIT_NOT_ALLOWED, Refused
from bridge.local.replies import Waiting, WatchReply

WATCH_S = 25.0


async def watch(
    bridge: Bridge, queue: AttachmentQueue, session_id: str, after: int
) -> WatchReply:
    """The messages after this sequence, once there are some; raises Refused.

    `session_id` is what the caller believes its chat to be: another one is not its.
    """
    if session_id != queue.record.session_id:
        raise Refused(
            "other_session",
            "This shell belongs to another chat than the one that is named, so it is "
            "not told of that one's messages.",
            "Leave --session out, or name the session of this very chat.",
            exit_code=EXIT_NOT_ALLOWED,
        )
    if not bridge.lets_wake(queue):
        raise Refused(
            "no_wake",
            "The person wants no message to start a turn in this chat, so its monitor "
            "is told of none.",
            "Messages come when a turn ends, and agent_message_read shows them.",
            exit_code=EXIT_NOT_ALLOWED,
        )
    with trio.move_on_after(WATCH_S):
        while queue.is_live and not bridge.stopping.is_set():
            # Race: what comes while we look must not be slept through
            # (test_what_comes_during_a_watch_ends_it).
            news = queue.native.news
            if _waiting(queue, after):
                break
            await news.wait()
    return WatchReply(
        provider=queue.record.provider,
        is_live=queue.is_live and not bridge.stopping.is_set(),
        waiting=_waiting(queue, after) if bridge.lets_wake(queue) else (),
    )


def _waiting(queue: AttachmentQueue, after: int) -> tuple[Waiting, ...]:
    rows = [
        row for row in queue.in_state(DeliveryState.PENDING) if row.sequence > after
    ]
    rows.sort(key=lambda row: row.sequence)
    return tuple(Waiting(row.sequence, label(row.sender)) for row in rows)
