"""The person's attach and detach, and a start of the bridge.

Promises that a name is bound only by an attach, that the tokens of a new lease
are on disk before its record, and that what waited for an agent's old session
goes on under its new one.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from bridge.core import remotes, texts
from bridge.core.effects import SaveAttachment
from bridge.core.events import (
    Confirmed,
    Detach,
    Event,
    OwnAttach,
    PersonAttach,
    ProcessGone,
    ServerHeld,
    ServerReplaced,
)
from bridge.core.ids import SessionId
from bridge.core.records import (
    Attachment,
    AttachmentState,
    DeliveryState,
    ProcessKey,
    SubmissionState,
)
from bridge.core.setup import RosterEntry
from bridge.core.tokens import ChildTokens
from bridge.driver import heirs, natives, stepping
from bridge.driver.bridge import Bridge
from bridge.driver.queue import AttachmentQueue
from bridge.errors import EXIT_CONFLICT, BridgeError, Refused
from bridge.providers import process
from bridge.upstream import api
from bridge.upstream.shapes import AttachRequest, Lease


class Wish(Struct, frozen=True):
    """What an attach asks for, once it is known who may ask it.

    `name` may be empty: then the session's last name, or the server's choice.
    `by_person`: it may confirm what is held and renew what was revoked.
    `by_hook`: a hook of this very session asks, so its hooks are loaded.
    `native_remote` is the way that the person named, empty for the former one;
    `tmux` is the pane that they named (remotes.pane_want), `wants` are their wishes
    for mail, None for the former ones.
    """

    provider: str
    session_id: str
    key: ProcessKey
    name: str = ""
    folder: str = ""
    purpose: str = ""
    by_person: bool = True
    by_hook: bool = False
    parent_config: str = ""
    native_remote: str = ""
    tmux: str = ""
    wants: tuple[str, ...] | None = None


class Attached(Struct, frozen=True):
    """What came of it; `is_again` when the session had this name before."""

    record: Attachment
    is_again: bool
    waiting: int = 0


async def attach(bridge: Bridge, wish: Wish) -> Attached:
    """Bind the name to the session; raises Refused or Unavailable."""
    async with bridge.attaching:
        known = bridge.roster.known(wish.provider, wish.session_id)
        name = wish.name or (known.record.name if known is not None else "")
        held = await _held_tokens(bridge, name)
        request = _request(bridge, wish, name, held)
        lease = await _asked(bridge, wish, request)
        wants = _wants(wish, _former(bridge, lease.name, known))
        queue = await _take_lease(bridge, wish, lease, held, wants)
        queue.hooks_heard |= _was_heard(bridge, wish)
        queue.native.is_closed = False
        await natives.look(bridge, queue)
        waiting = len(queue.in_state(DeliveryState.PENDING))
        return Attached(queue.record, known is queue, waiting)


def _was_heard(bridge: Bridge, wish: Wish) -> bool:
    """Whether any hook of this session has reached us, attached or not."""
    return wish.by_hook or (wish.key, wish.session_id) in bridge.hooked


def _former(
    bridge: Bridge, name: str, known: AttachmentQueue | None
) -> Attachment | None:
    """Whose wishes hold on: the session's own identity, else the name's last one."""
    queue = known or bridge.roster.named(name)
    return queue.record if queue is not None else None


def _wants(wish: Wish, former: Attachment | None) -> tuple[str, ...]:
    """The person's wishes of now."""
    kept = former.wants if former is not None else ()
    if former is not None and former.provider != wish.provider:
        kept = remotes.without_ways(kept)
    if former is not None and former.process_key != wish.key:
        kept = remotes.without_process(kept)
    return remotes.wishes(kept, wish.wants, wish.native_remote, wish.tmux)


async def _keep_wishes(queue: AttachmentQueue, wants: tuple[str, ...]) -> None:
    if wants != queue.record.wants:
        async with queue.turn:
            await queue.commit([SaveAttachment(replace(queue.record, wants=wants))])


async def _held_tokens(bridge: Bridge, name: str) -> ChildTokens | None:
    """The tokens we still hold for this name, so that no new child is made."""
    holder = bridge.roster.named(name) if name else None
    if holder is None:
        return None
    return await bridge.leases.read(holder.record.attachment_id)


def _request(
    bridge: Bridge, wish: Wish, name: str, held: ChildTokens | None
) -> AttachRequest:
    return AttachRequest(
        provider=wish.provider,
        session_id=wish.session_id,
        host_id=bridge.link.host_id,
        name=name or None,
        purpose=wish.purpose or None,
        confirm=wish.by_person,
        child_id=held.connection_id if held is not None else None,
    )


async def _asked(bridge: Bridge, wish: Wish, request: AttachRequest) -> Lease:
    """The server's lease; a held name is said in the words of the chat."""
    try:
        return await api.attach(bridge.link.parent, request)
    except Refused as error:
        if error.code != "name_held":
            raise
        if not await _let_go(bridge, request.name or ""):
            raise _held(wish, error) from error
    return await api.attach(bridge.link.parent, request)


async def _let_go(bridge: Bridge, name: str) -> bool:
    """Tell the server of an end here that it has not heard of; False without one.

    Crash: we were killed, or the server away, when it was to be told
    (test_a_name_whose_session_ended_unheard_by_the_server_is_free).
    """
    holder = bridge.roster.named(name) if name else None
    if holder is None or holder.record.state is not AttachmentState.OFFLINE:
        return False
    attachment_id = holder.record.attachment_id
    try:
        caller = await bridge.link.child(attachment_id)
        await api.report_offline(caller, attachment_id)
    except Refused:
        return False
    return True


def _held(wish: Wish, error: Refused) -> Refused:
    holder = error.details.get("holder")
    if not isinstance(holder, dict):
        return error
    text = texts.name_held(
        str(holder.get("name", wish.name)),
        str(holder.get("provider", "")),
        str(holder.get("since", "")),
        wish.provider,
    )
    return Refused("name_held", text, exit_code=EXIT_CONFLICT)


async def _take_lease(
    bridge: Bridge,
    wish: Wish,
    lease: Lease,
    held: ChildTokens | None,
    wants: tuple[str, ...],
) -> AttachmentQueue:
    queue = bridge.roster.get(lease.attachment_id)
    if queue is None:
        await _keep_tokens(bridge, lease, held)
        queue = bridge.new_queue(_record(bridge, wish, lease, wants))
        bridge.roster.add(queue)
    else:
        await _renew_tokens(bridge, queue, lease, held)
    before = queue.record
    queue.others = tuple(
        RosterEntry(each.name, each.provider, each.purpose, each.connected)
        for each in lease.roster
    )
    at = bridge.clock.wall()
    try:
        # Race: the chat is live from the next line on, and a hook of it or an
        # extension looks for a way (test_who_wants_no_waking_is_never_live_without_it).
        await _keep_wishes(queue, wants)
        is_held = await _bind(bridge, wish, lease, queue, at)
    finally:
        stepping.reopen_stream(bridge, queue)
        watch_process(bridge, wish.key)
    await _drop_other_way(bridge, queue, before)
    if not is_held:
        await _supersede(bridge, queue, at)
    return queue


async def _renew_tokens(
    bridge: Bridge, queue: AttachmentQueue, lease: Lease, held: ChildTokens | None
) -> None:
    # Race: the stream that runs on the old proof is about to be refused, and must
    # not end the new one (test_what_an_old_stream_says_of_its_end_is_not_heard).
    async with queue.turn:
        queue.close_stream()
        try:
            await _keep_tokens(bridge, lease, held)
        except BridgeError:
            stepping.reopen_stream(bridge, queue)
            raise


async def _bind(
    bridge: Bridge, wish: Wish, lease: Lease, queue: AttachmentQueue, at: float
) -> bool:
    """Let the attachment hear of the attach; True when it is held."""
    if lease.state == "held":
        await stepping.step(bridge, queue, ServerHeld(at))
        return True
    was_held = queue.record.state is AttachmentState.HELD
    await stepping.step(bridge, queue, _attach_event(wish, at))
    if was_held:
        await stepping.step(bridge, queue, Confirmed(at))
    return False


def _attach_event(wish: Wish, at: float) -> Event:
    kind = PersonAttach if wish.by_person else OwnAttach
    return kind(at, wish.key)


async def _keep_tokens(bridge: Bridge, lease: Lease, held: ChildTokens | None) -> None:
    """Tokens first: a record without them could not be told of anything."""
    attachment_id = lease.attachment_id
    bridge.link.forget(attachment_id)
    if lease.child is not None:
        await bridge.leases.save(attachment_id, lease.child)
        return
    if await bridge.leases.read(attachment_id) is not None:
        return
    # Race: the older lease's file may be erased just now, since that lease ended
    # (test_tokens_that_are_erased_during_an_attach_are_kept).
    if held is not None:
        await bridge.leases.save(attachment_id, held)


async def _drop_other_way(
    bridge: Bridge, queue: AttachmentQueue, before: Attachment
) -> None:
    """What was found for other wishes, or in another process, is used no more."""
    way, record = queue.native.way, queue.record
    is_as_before = (record.wants, record.process_key) == (
        before.wants,
        before.process_key,
    )
    if way is not None and not is_as_before:
        await natives.drop(bridge, queue, way)


def _record(
    bridge: Bridge, wish: Wish, lease: Lease, wants: tuple[str, ...]
) -> Attachment:
    return Attachment(
        attachment_id=lease.attachment_id,
        agent_id=lease.agent_id,
        name=lease.name,
        provider=wish.provider,
        session_id=SessionId(wish.session_id),
        process_key=wish.key,
        server=bridge.link.name,
        parent_config=wish.parent_config,
        folder=wish.folder,
        purpose=wish.purpose,
        created_at=bridge.clock.wall(),
        watermark=lease.offered_through,
        offered_through=lease.offered_through,
        wants=wants,
    )


async def _supersede(bridge: Bridge, queue: AttachmentQueue, at: float) -> None:
    """The agent's other attachments are over; what they had to send goes on here."""
    record = queue.record
    others = [q for q in bridge.roster.of_agent(record.agent_id) if q is not queue]
    async with queue.turn:
        # Race: it ended while its turn was waited for. What it gets now nobody would
        # be told of; with the others it waits for the next attach
        # (test_nothing_is_moved_to_an_attachment_that_ends_in_its_attach).
        if not queue.is_live:
            return
        estates = [heirs.estate_of(each) for each in others]
        own = heirs.Estate(tuple(queue.submissions.values()), ())
        moved = heirs.inherited(record.attachment_id, (*estates, own), at)
        await queue.commit(moved)
    for other, estate in zip(others, estates, strict=True):
        other.hand_over(estate.submissions, estate.receipts)
        await stepping.step(bridge, other, ServerReplaced(at))
        await heirs.pass_on(bridge, other)
    for other in bridge.roster.of_session(record.provider, record.session_id):
        if other is not queue:
            await stepping.step(bridge, other, ServerReplaced(at))


async def detach(bridge: Bridge, queue: AttachmentQueue) -> tuple[str, ...]:
    """End it; the submission ids that were never sent, for the person."""
    known = _undelivered(queue)
    await stepping.step(bridge, queue, Detach(bridge.clock.wall()))
    # Race: an agent may have sent something while the detach waited for its turn
    # (test_what_an_agent_says_while_it_is_detached_is_refused).
    return known if queue.is_forgotten else _undelivered(queue)


def _undelivered(queue: AttachmentQueue) -> tuple[str, ...]:
    """What was never sent, or was refused without its agent having heard of it."""
    return tuple(
        row.submission_id
        for row in queue.submissions.values()
        if row.state is not SubmissionState.ACCEPTED and not row.told
    )


def watch_process(bridge: Bridge, key: ProcessKey) -> None:
    """When this process ends, everything in it goes offline."""
    if key not in bridge.watched:
        bridge.watched.add(key)
        bridge.start(_watch, bridge, key)


async def _watch(bridge: Bridge, key: ProcessKey) -> None:
    await process.wait_gone(key)
    bridge.watched.discard(key)
    bridge.forget_process(key)
    for queue in bridge.roster.of_process(key):
        await stepping.step(bridge, queue, ProcessGone(bridge.clock.wall()))


def named(bridge: Bridge, name: str) -> AttachmentQueue:
    """The attachment of this name; raises Refused with what to do."""
    queue = bridge.roster.named(name)
    if queue is None:
        raise Refused(
            "not_attached",
            f"No chat of this computer is attached as {name}, so nothing was done.",
            "See who is: agentworks agents",
        )
    return queue
