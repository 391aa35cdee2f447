"""The wake test: one harmless message, and how far it came by when.

Owns its steps. Promises that its text is fixed, that it
goes the way of every other message, and that a step is only noted once what it says
is so.
"""

from __future__ import annotations

import trio

from bridge.core import standing, texts
from bridge.core.ids import MessageId, new_id
from bridge.core.records import Delivery, DeliveryState, OfferOutcome
from bridge.core.routing import HOOK
from bridge.driver import attaching, table
from bridge.driver.bridge import Bridge
from bridge.driver.queue import AttachmentQueue
from bridge.driver.trial import Trial
from bridge.errors import Refused
from bridge.local.replies import WakeReply, WakeStep
from bridge.upstream import api

LOOK_S = 0.02
WAIT_S = 2.0
# A step that takes longer counts as one that does not come.
STEP_S = 60.0
ACCEPTED, KEPT, OFFERED, SEEN, ACKNOWLEDGED = range(5)
_ACKNOWLEDGED = (DeliveryState.ADMITTED, DeliveryState.PROCESSED)


async def begin(bridge: Bridge, name: str) -> WakeReply:
    """Send the message; raises Refused for a chat that is not live."""
    queue = attaching.named(bridge, name)
    why = table.not_live(bridge, queue)
    if not queue.is_live or why:
        raise Refused(
            "not_live",
            f"{queue.record.name} is not live ({why or queue.record.state.value}), so "
            "nothing was sent.",
            f"See why: agentworks agents {queue.record.name}",
        )
    sent_at = bridge.clock.running()
    submission_id = new_id("sub", bridge.clock.wall(), bridge.clock.random_bytes(10))
    said = {
        "action": "send",
        "target": f"agent:{queue.record.name}",
        "message": texts.WAKE_TEST,
        "submission_id": submission_id,
    }
    answer = await api.call_messages(bridge.link.parent, said)
    trial = Trial(queue, MessageId(str(answer.get("message_id", ""))), sent_at)
    bridge.trial = trial
    _note(bridge, trial, ACCEPTED)
    return await progress(bridge, len(trial.steps))


async def progress(bridge: Bridge, known: int) -> WakeReply:
    """More than `known` steps, or what there is after WAIT_S."""
    trial = bridge.trial
    if trial is None:
        raise Refused("no_wake_test", "No wake test was begun in this bridge.")
    with trio.move_on_after(WAIT_S):
        while True:
            await _look(bridge, trial)
            if len(trial.steps) > known:
                break
            await trio.sleep(LOOK_S)
    passed_s = bridge.clock.running() - trial.sent_at
    last_s = trial.steps[-1].passed_s if trial.steps else 0.0
    is_over = len(trial.steps) > ACKNOWLEDGED or passed_s - last_s > STEP_S
    return WakeReply(trial.queue.record.name, tuple(trial.steps), is_over)


async def _look(bridge: Bridge, trial: Trial) -> None:
    """Note each further step that the message has come through."""
    row = trial.queue.deliveries.get(trial.message_id)
    if row is None:
        return
    _note(bridge, trial, KEPT)
    if row.offer_id is None:
        return
    offer = await bridge.journal.offer(row.offer_id)
    if offer is not None:
        is_hook = offer.route == HOOK
        route = HOOK if is_hook else trial.queue.record.native_route or offer.route
        unsure = offer.outcome is OfferOutcome.UNKNOWN
        words = standing.route_words(route)
        _note(bridge, trial, OFFERED, f"{words}, perhaps in vain" if unsure else words)
    if _is_seen(trial.queue, row):
        _note(bridge, trial, SEEN)
    if row.state in _ACKNOWLEDGED:
        _note(bridge, trial, SEEN, "by its agent's own word")
        _note(bridge, trial, ACKNOWLEDGED, row.state.value)


def _is_seen(queue: AttachmentQueue, row: Delivery) -> bool:
    return row.offer_id is not None and queue.guard.confirmed == row.offer_id


def _note(bridge: Bridge, trial: Trial, step: int, note: str = "") -> None:
    if len(trial.steps) == step:
        passed_s = bridge.clock.running() - trial.sent_at
        trial.steps.append(WakeStep(passed_s, note))
