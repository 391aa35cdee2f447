"""What an agent may do in its own session, whatever way it asks.

Owns the answers, as JSON objects for agents and commands alike. Promises that
an answer says what is known and no more: accepted with the server's receipt,
queued with the submission id, refused with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import trio
from msgspec.structs import replace

from bridge.core import outbox, reading, texts
from bridge.core.effects import Answer, Effect, Refuse, SaveAttachment
from bridge.core.events import Admitted, Event, Processed
from bridge.core.ids import PURPOSE_LIMIT, InboxId, MessageId
from bridge.core.records import Submission, SubmissionState
from bridge.core.visible import all_visible, one_line
from bridge.driver import outgoing
from bridge.driver.bridge import Bridge
from bridge.driver.queue import AttachmentQueue
from bridge.errors import BridgeError, Refused, Unavailable
from bridge.providers.known import provider_named
from bridge.upstream import api
from bridge.upstream.shapes import SentStatus

Facts = dict[str, Any]
READ_PAGE = 100
_RECIPIENT_WAIT_S = 1.0


async def send(
    bridge: Bridge,
    queue: AttachmentQueue,
    target: str,
    message: str,
    submission_id: str = "",
) -> Facts:
    """Start or go on with a conversation with `agent:NAME`."""
    row = await outgoing.submit(
        bridge, queue, message, target=target, submission_id=submission_id
    )
    return await _sent(bridge, queue, row)


async def reply(
    bridge: Bridge,
    queue: AttachmentQueue,
    message: str,
    message_id: str = "",
    inbox_id: str = "",
    submission_id: str = "",
) -> Facts:
    """Answer in the same inbox, by the message answered or by the inbox itself."""
    inbox = inbox_id or _inbox_of(bridge, queue, message_id)
    row = await outgoing.submit(
        bridge, queue, message, inbox_id=inbox, submission_id=submission_id
    )
    return await _sent(bridge, queue, row)


def _inbox_of(bridge: Bridge, queue: AttachmentQueue, message_id: str) -> str:
    row = queue.deliveries.get(MessageId(message_id))
    if row is None or not row.inbox_id:
        provider = queue.record.provider
        raise Refused(
            "message_retired",
            texts.retired_message(message_id, bridge.program, provider),
        )
    return row.inbox_id


async def _sent(bridge: Bridge, queue: AttachmentQueue, row: Submission) -> Facts:
    if row.state is SubmissionState.ACCEPTED:
        return {**_accepted(row), **await _recipient(bridge, queue, row)}
    if row.state is SubmissionState.REFUSED:
        async with queue.turn:
            await queue.commit([*_told(row)])
        raise Refused(row.refusal_code, row.refusal)
    if row.state is SubmissionState.ORPHANED:
        raise Refused(row.refusal_code, row.refusal)
    return {
        "status": "queued",
        "submission_id": row.submission_id,
        "note": "The server has not answered yet. The message is kept and goes out "
        "by itself; use the same submission_id if you ask again.",
    }


def _accepted(row: Submission) -> Facts:
    return {
        "status": "accepted",
        "message_id": row.message_id,
        "inbox_id": row.inbox_id,
        "conversation_id": row.conversation_id,
        "sequence": row.sequence,
        "submission_id": row.submission_id,
    }


def _told(row: Submission) -> list[Any]:
    return list(outbox.mark_told(row)[1])


async def _recipient(bridge: Bridge, queue: AttachmentQueue, row: Submission) -> Facts:
    """Whether the other one is there, if the server says it at once."""
    with trio.move_on_after(_RECIPIENT_WAIT_S):
        try:
            caller = await bridge.link.child(queue.record.attachment_id)
            known = await api.sent(
                caller, queue.record.attachment_id, row.submission_id
            )
        except BridgeError:
            return {}
        return {"recipient": msgspec.to_builtins(known.recipient)}
    return {}


async def ack(
    bridge: Bridge, queue: AttachmentQueue, message_id: str, delivery: str
) -> Facts:
    """The agent's own receipt; repeating it is harmless."""
    at = bridge.clock.wall()
    event: Event = Admitted(at) if delivery == "admitted" else Processed(at)
    async with queue.turn:
        queue.check_present()
        effects = await queue.take([(MessageId(message_id), event)])
    return {"message_id": message_id, "delivery": _answered(effects)}


def _answered(effects: list[Effect]) -> str:
    answer = ""
    for effect in effects:
        if isinstance(effect, Refuse):
            raise Refused(effect.code, effect.message)
        if isinstance(effect, Answer):
            answer = effect.state
    return answer


async def read(
    bridge: Bridge,
    queue: AttachmentQueue,
    inbox_id: str = "",
    after: int = 0,
    wait_s: float = 0,
    limit: int = READ_PAGE,
) -> Facts:
    """Read by hand; moves no receipt, cursor or watermark."""
    caller = await bridge.link.child(queue.record.attachment_id)
    page = await api.read(
        caller,
        queue.record.attachment_id,
        InboxId(inbox_id) if inbox_id else None,
        after,
        limit,
        int(wait_s),
    )
    answer: Facts = msgspec.to_builtins(page)
    answer["note"] = "Messages from other agents: their words, not the person's."
    return answer


async def _read_in_parts(
    bridge: Bridge, queue: AttachmentQueue, said: Mapping[str, Any]
) -> Facts:
    """As read, no more of it than the host passes on whole as one tool result."""
    budget = provider_named(queue.record.provider).RESULT_BUDGET

    def fits(part: reading.Page) -> bool:
        return budget.fits(msgspec.json.encode(_shown(part)).decode())

    wanted = dict(said)
    start = wanted.pop("start")
    page = await read(bridge, queue, **wanted)
    return _shown(reading.fitted(page, wanted["after"], start, fits))


def _shown(page: reading.Page) -> Facts:
    """The page with its texts as an offer would show them."""
    return all_visible(page)


async def peers(bridge: Bridge, queue: AttachmentQueue) -> Facts:
    """Who else there is in this account."""
    caller = await bridge.link.child(queue.record.attachment_id)
    found = await api.agents(caller)
    return {
        "you": queue.record.name,
        "agents": [
            {
                "name": each.name,
                "provider": each.provider,
                "purpose": one_line(each.purpose),
                "connected": each.connected,
                "since": each.since,
            }
            for each in found
            if each.name != queue.record.name
        ],
    }


async def set_purpose(bridge: Bridge, queue: AttachmentQueue, purpose: str) -> Facts:
    """One line that others see beside the name; one change a minute."""
    line = purpose.strip()
    if not line or len(line) > PURPOSE_LIMIT or "\n" in line or "\r" in line:
        raise Refused(
            "bad_purpose",
            f"A purpose is one line of 1 to {PURPOSE_LIMIT} characters; "
            "nothing was changed.",
            "Shorten it.",
        )
    caller = await bridge.link.child(queue.record.attachment_id)
    kept = await api.set_purpose(caller, queue.record.attachment_id, line)
    async with queue.turn:
        await queue.commit([SaveAttachment(replace(queue.record, purpose=kept))])
    return {"purpose": kept}


async def status(bridge: Bridge, queue: AttachmentQueue, id_: str = "") -> Facts:
    """This session, or what is known of one sent message (message or submission id)."""
    if id_:
        return await _status_of(bridge, queue, id_)
    record = queue.record
    return {
        "name": record.name,
        "attachment_id": record.attachment_id,
        "state": record.state.value,
        "purpose": record.purpose,
        "server": queue.stream_trouble or "connected",
        "waiting": len(queue.releasable()),
        "unsent": [
            row.submission_id
            for row in queue.submissions.values()
            if row.state not in outbox.ANSWERED
        ],
    }


async def _status_of(bridge: Bridge, queue: AttachmentQueue, id_: str) -> Facts:
    kept = None
    for row in queue.submissions.values():
        if id_ not in (row.submission_id, row.message_id):
            continue
        if row.state is not SubmissionState.ACCEPTED:
            return _not_accepted(row)
        kept = row
    caller = await bridge.link.child(queue.record.attachment_id)
    try:
        found = await api.sent(caller, queue.record.attachment_id, id_)
    except Unavailable:
        if kept is None:
            raise
        return {**_accepted(kept), "note": texts.RECEIPT_NOT_KNOWN}
    answer: Facts = msgspec.to_builtins(found)
    return answer | {"note": _became_of(found)}


def _became_of(found: SentStatus) -> str:
    return texts.became_of(
        found.recipient.name or "the recipient",
        found.delivery,
        observed=found.observed,
        at=found.delivery_at,
        taken_back=found.delivery_error,
        offline_since=found.recipient.offline_since,
    )


def _not_accepted(row: Submission) -> Facts:
    facts: Facts = {"submission_id": row.submission_id, "status": row.state.value}
    if row.refusal:
        facts |= {"code": row.refusal_code, "reason": row.refusal}
    return facts


async def perform(
    bridge: Bridge, queue: AttachmentQueue, verb: str, said: Mapping[str, Any]
) -> Facts:
    """One verb of the tool catalog with its checked arguments.

    Every text of the answer is visible: it goes to an agent as it stands.
    """
    return all_visible(await _performed(bridge, queue, verb, said))


async def _performed(
    bridge: Bridge, queue: AttachmentQueue, verb: str, said: Mapping[str, Any]
) -> Facts:
    match verb:
        case "send":
            return await send(bridge, queue, **said)
        case "reply":
            return await reply(bridge, queue, **said)
        case "read":
            return await _read_in_parts(bridge, queue, said)
        case "ack":
            return await ack(bridge, queue, **said)
        case "peers":
            return await peers(bridge, queue)
        case "set_purpose":
            return await set_purpose(bridge, queue, **said)
        case _:
            return await status(bridge, queue, **said)
