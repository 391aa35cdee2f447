"""Every call of the message server that the bridge makes, typed.

Owns the paths and the shapes of the questions. Promises what transfer.ask
promises, and that a call whose token was refused is made once more with a
renewed one, since a refused call did nothing.

Raises of every function: Unavailable (try later; `retry_after_s` is the
server's floor), Refused (`status`, `code`, `details`), Invalid. Only `send`
and `call_messages` raise Unknown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import quote

from msgspec import Struct

from bridge.clock import Clock
from bridge.core.ids import AgentId, AttachmentId, InboxId, MessageId, SubmissionId
from bridge.core.records import Receipt
from bridge.errors import Refused
from bridge.upstream import shapes
from bridge.upstream.clients import Server
from bridge.upstream.credentials import Credential, tokens_of
from bridge.upstream.transfer import CALL_DEADLINE_S, Question, ask

Answer = TypeVar("Answer")

PUBLIC = "/api/external/v1"
BRIDGE = f"{PUBLIC}/bridge"
UNAUTHORIZED = 401

READ_PAGE_LIMIT = 100
READ_WAIT_LIMIT_S = 25
RELEASE_LIMIT = 100
RECEIPTS_LIMIT = 500


class Caller(Struct, frozen=True):
    """Who asks: a server and the proof that goes with each question."""

    server: Server
    credential: Credential
    clock: Clock

    async def ask(self, question: Question, into: type[Answer]) -> Answer:
        """Ask with the credential's token, once more with a renewed one."""
        token = await self.credential.token()
        try:
            return await ask(self.server, question, into, self.clock, token)
        except Refused as error:
            if error.status != UNAUTHORIZED:
                raise
        renewed = await self.credential.renewed(token)
        return await ask(self.server, question, into, self.clock, renewed)


# ---- the person's side: the parent's token -------------------------------------


async def hello(caller: Caller) -> shapes.Hello:
    """What the server is; also a probe whether it is there."""
    return await caller.ask(Question("GET", f"{BRIDGE}/hello"), shapes.Hello)


async def tools(caller: Caller) -> dict[str, Any]:
    """The public tool catalog, as it stands."""
    return await caller.ask(Question("GET", f"{PUBLIC}/tools"), dict[str, Any])


async def attach(caller: Caller, request: shapes.AttachRequest) -> shapes.Lease:
    """Give a session a name; the same session keeps its lease.

    Save `child` before anything else: the server says it once. Refused 409
    `name_held` has `holder` in its details, 403 says how to be allowed.
    """
    question = Question("POST", f"{BRIDGE}/attachments", body=request)
    reply = await caller.ask(question, shapes.AttachReply)
    grant, now = reply.child, caller.clock.wall()
    return shapes.Lease(
        AttachmentId(reply.attachment_id),
        AgentId(reply.agent_id),
        reply.name,
        reply.state,
        reply.offered_through,
        None if grant is None else tokens_of(grant, now),
        reply.roster,
    )


async def detach(caller: Caller, attachment_id: AttachmentId) -> None:
    """End the lease and revoke its child; the name is kept. By parent or child."""
    await caller.ask(Question("DELETE", _place(attachment_id)), shapes.Nothing)


async def agents(caller: Caller) -> tuple[shapes.Agent, ...]:
    """The account's names, by parent or child."""
    found = await caller.ask(Question("GET", f"{BRIDGE}/agents"), shapes.Directory)
    return found.agents


async def call_messages(
    caller: Caller, arguments: Mapping[str, object], wait_s: float = 0.0
) -> dict[str, Any]:
    """The public `messages` tool; `action` is among the arguments.

    A lost answer of a send is Unknown; every other action may be repeated.
    """
    question = Question(
        "POST",
        f"{PUBLIC}/call",
        body={"name": "messages", "arguments": arguments},
        deadline_s=wait_s + CALL_DEADLINE_S,
        is_repeatable=arguments.get("action") != "send",
    )
    return await caller.ask(question, dict[str, Any])


# ---- one attachment's side: the child's token --------------------------------------


async def report_offline(caller: Caller, attachment_id: AttachmentId) -> None:
    """The session pauses; its name may be moved by a person's attach."""
    question = Question("POST", _place(attachment_id, "offline"), body={})
    await caller.ask(question, shapes.Nothing)


async def report_progress(
    caller: Caller, attachment_id: AttachmentId, offered_through: int
) -> int:
    """Where a newly attached session of this agent is to start; never lowered."""
    body = {"offered_through": offered_through}
    question = Question("POST", _place(attachment_id, "progress"), body=body)
    return (await caller.ask(question, shapes.Progress)).offered_through


async def read(
    caller: Caller,
    attachment_id: AttachmentId,
    inbox_id: InboxId | None = None,
    after: int = 0,
    limit: int = 30,
    wait_s: int = 0,
) -> shapes.ReadPage:
    """An explicit read of the mailbox, or of one inbox; it moves nothing.

    `limit` is 1 to 100 messages, `wait_s` 0 to 25 seconds. Refused 422
    `wrong_cursor` for a cursor of the other kind.
    """
    query: dict[str, str | int] = {"after": after, "limit": limit, "wait_s": wait_s}
    if inbox_id is not None:
        query["inbox_id"] = inbox_id
    question = Question(
        "GET",
        _place(attachment_id, "read"),
        query=query,
        deadline_s=wait_s + CALL_DEADLINE_S,
    )
    return await caller.ask(question, shapes.ReadPage)


async def ask_release(
    caller: Caller, attachment_id: AttachmentId, message_ids: Sequence[MessageId]
) -> tuple[shapes.Released, float]:
    """May these still be shown? Up to 100 ids.

    The second value is when it was asked, in running seconds: the word counts
    from there.
    """
    asked_at = caller.clock.running()
    body = {"message_ids": message_ids}
    question = Question("POST", _place(attachment_id, "release"), body=body)
    return await caller.ask(question, shapes.Released), asked_at


async def send_receipts(
    caller: Caller, attachment_id: AttachmentId, receipts: Sequence[Receipt]
) -> shapes.ReceiptsTaken:
    """Hand over up to 500 receipts, in order; repeating is harmless."""
    body = {"receipts": [_receipt(receipt) for receipt in receipts]}
    question = Question("POST", _place(attachment_id, "receipts"), body=body)
    return await caller.ask(question, shapes.ReceiptsTaken)


async def send(
    caller: Caller,
    attachment_id: AttachmentId,
    message: str,
    submission_id: SubmissionId,
    target: str | None = None,
    inbox_id: InboxId | None = None,
) -> shapes.SendResult:
    """Say something to `target` or in `inbox_id`; exactly one of them.

    Raises Unknown when the answer was lost: only the same submission id may go
    out again. Refused 404 has `nearest` names in its details.
    """
    place = {"target": target} if inbox_id is None else {"inbox_id": inbox_id}
    body = {**place, "message": message, "submission_id": submission_id}
    question = Question(
        "POST", _place(attachment_id, "send"), body=body, is_repeatable=False
    )
    return await caller.ask(question, shapes.SendResult)


async def sent(
    caller: Caller, attachment_id: AttachmentId, message_or_submission_id: str
) -> shapes.SentStatus:
    """What is known of a message that this agent sent."""
    path = _place(attachment_id, f"sent/{quote(message_or_submission_id, safe='')}")
    return await caller.ask(Question("GET", path), shapes.SentStatus)


async def set_purpose(caller: Caller, attachment_id: AttachmentId, purpose: str) -> str:
    """One line of up to 512 characters; Unavailable within a minute of the last."""
    question = Question(
        "PUT", _place(attachment_id, "purpose"), body={"purpose": purpose}
    )
    return (await caller.ask(question, shapes.Purpose)).purpose


def _place(attachment_id: AttachmentId, what: str = "") -> str:
    base = f"{BRIDGE}/attachments/{quote(attachment_id, safe='')}"
    return f"{base}/{what}" if what else base


def _receipt(receipt: Receipt) -> dict[str, object]:
    said: dict[str, object] = {
        "message_id": receipt.message_id,
        "delivery": receipt.delivery,
        "at": receipt.at,
    }
    return said | ({"evidence": receipt.evidence} if receipt.evidence else {})
