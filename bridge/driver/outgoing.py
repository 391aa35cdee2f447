"""What an agent says: taken, kept, and sent until the server has answered.

Promises that "queued" means on disk, that a repeat of a submission id is the
same message, and that a caller waits no longer than it was told.
"""

from __future__ import annotations

import trio

from bridge.core import outbox
from bridge.core.effects import Refuse, Save
from bridge.core.ids import (
    MESSAGE_LIMIT,
    InboxId,
    SubmissionId,
    fold_name,
    is_submission_id,
    new_id,
)
from bridge.core.records import Submission, SubmissionState
from bridge.driver.bridge import Bridge
from bridge.driver.queue import AttachmentQueue
from bridge.errors import Refused

# A server that is silent for longer is not waited for by an agent.
ANSWER_WAIT_S = 5.0
_DEFINITE = (
    SubmissionState.ACCEPTED,
    SubmissionState.REFUSED,
    SubmissionState.ORPHANED,
)


async def submit(
    bridge: Bridge,
    queue: AttachmentQueue,
    text: str,
    *,
    target: str = "",
    inbox_id: str = "",
    submission_id: str = "",
) -> Submission:
    """Keep the message, then wait for the server's answer as long as that is fair.

    Raises Refused for a text, address or id that cannot be sent, and StorageFull.
    """
    body = checked_body(text)
    new = _submission(bridge, queue, body, target, inbox_id, submission_id)
    async with queue.turn:
        queue.check_present()
        known = await _known(bridge, queue, new.submission_id)
        kept, effects = outbox.admit(known, new, bridge.submissions())
        for effect in effects:
            if isinstance(effect, Refuse):
                raise Refused(effect.code, effect.message)
        await queue.commit([each for each in effects if isinstance(each, Save)])
    queue.wake()
    return await _wait_for_answer(queue, kept)


async def _known(
    bridge: Bridge, queue: AttachmentQueue, submission_id: SubmissionId
) -> Submission | None:
    held = queue.submissions.get(submission_id)
    if held is not None:
        return held
    return await bridge.journal.submission(queue.record.agent_id, submission_id)


def checked_body(text: str) -> str:
    """The trimmed text; raises Refused where it is none, too long or not text."""
    body = text.strip()
    if not 1 <= len(body) <= MESSAGE_LIMIT:
        raise Refused(
            "message_length",
            f"A message has 1 to {MESSAGE_LIMIT:,} characters and this one has "
            f"{len(body):,}, so it was not sent.",
            "Shorten it, or send it in parts." if body else "Give it a text.",
        )
    if any(0xD800 <= ord(each) <= 0xDFFF for each in body):
        raise Refused(
            "message_not_text",
            "The message holds half of a character pair, so it was not sent.",
            "Send valid Unicode text.",
        )
    return body


def _submission(
    bridge: Bridge,
    queue: AttachmentQueue,
    body: str,
    target: str,
    inbox_id: str,
    submission_id: str,
) -> Submission:
    if submission_id and not is_submission_id(submission_id):
        raise Refused(
            "bad_submission_id",
            "A submission id is 1 to 128 printable ASCII characters; nothing was sent.",
            "Leave it out, or use such an id.",
        )
    at = bridge.clock.wall()
    chosen = submission_id or new_id("sub", at, bridge.clock.random_bytes(10))
    where, inbox = (target or None), (InboxId(inbox_id) if inbox_id else None)
    return Submission(
        submission_id=SubmissionId(chosen),
        attachment_id=queue.record.attachment_id,
        agent_id=queue.record.agent_id,
        lane=inbox_id or fold_name(target),
        content_hash=outbox.content_hash(where, inbox, body),
        number=bridge.next_submission_number(),
        body=body,
        target=where,
        inbox_id=inbox,
        created_at=at,
    )


async def _wait_for_answer(queue: AttachmentQueue, kept: Submission) -> Submission:
    with trio.move_on_after(0 if queue.stream_trouble else ANSWER_WAIT_S):
        while True:
            row = queue.submissions.get(kept.submission_id, kept)
            if row.state in _DEFINITE:
                break
            await queue.changed.wait()
    return queue.submissions.get(kept.submission_id, kept)
