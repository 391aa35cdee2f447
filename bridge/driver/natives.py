"""A session's native way, and the mail that goes it.

Owns one task for each attached session that has a way. Promises that a message
goes a native way at most once, that what the way refused is left to the hooks and
the person is told, that nothing is handed over without the server's fresh word,
and that a chat whose person wants no waking is never woken.
"""

from __future__ import annotations

from collections.abc import Sequence

import trio

from bridge.core import loopguard, release
from bridge.core.events import Admitted, Retracted, RouteFound
from bridge.core.ids import MessageId, OfferId
from bridge.core.records import OfferOutcome, ProcessKey
from bridge.core.routing import Parcel, Reached
from bridge.driver import finding, noticing, offering, stepping
from bridge.driver.bridge import Bridge
from bridge.driver.cutting_short import unless_stopped
from bridge.driver.queue import AttachmentQueue
from bridge.errors import BridgeError
from bridge.routes.way import Way
from bridge.upstream import api

# The server answers within milliseconds, or its stream's word has to do.
_RELEASE_S = 2.0
_TOLD = {
    OfferOutcome.NOT_EMITTED: "native_refused",
    OfferOutcome.UNKNOWN: "native_unknown",
}
_STOPPED = Reached(OfferOutcome.UNKNOWN, "The bridge stopped meanwhile.")
_TOO_SLOW = Reached(OfferOutcome.UNKNOWN, "The chat's program did not answer in time.")


async def look(bridge: Bridge, queue: AttachmentQueue) -> None:
    """Give the session its native way, if it has one now and none is in use.

    To be called when a way may have come: after an attach, at a start, at each of
    its hooks, when an extension connects. Changes nothing else.
    """
    async with queue.native.looking:
        while _is_free(queue):
            wished = _wished(queue)
            way, queue.native.why = None, ""
            if bridge.lets_wake(queue):
                way = await finding.find(bridge, queue)
            # Race: an attach may have changed what the person wishes, or the chat's
            # process (test_a_way_found_for_an_earlier_wish_is_not_used).
            if _wished(queue) == wished:
                await _take(bridge, queue, way)
                return


async def _take(bridge: Bridge, queue: AttachmentQueue, way: Way | None) -> None:
    if way is not None:
        await use(bridge, queue, way)
    elif _is_free(queue) and queue.record.native_route:
        await stepping.step(bridge, queue, RouteFound(bridge.clock.wall(), ""))


def _wished(queue: AttachmentQueue) -> tuple[tuple[str, ...], ProcessKey]:
    """What a way is found for, beside the session itself."""
    return queue.record.wants, queue.record.process_key


async def use(bridge: Bridge, queue: AttachmentQueue, way: Way) -> None:
    """From now on mail goes this way, unless another one is in use already."""
    # Race: another look found one while this one was looking
    # (test_of_two_ways_found_at_once_one_is_used).
    if not _is_free(queue):
        return
    queue.native.way, queue.native.why = way, ""
    try:
        await stepping.step(bridge, queue, RouteFound(bridge.clock.wall(), way.address))
    except BaseException:
        # Nobody serves it (test_a_way_that_could_not_be_saved_is_found_again).
        if queue.native.way is way:
            queue.native.way = None
        raise
    bridge.log.info("way_found", route=way.route, name=queue.record.name)
    bridge.start(_serve, bridge, queue, way)


def _is_in_use(bridge: Bridge, queue: AttachmentQueue, way: Way) -> bool:
    return queue.is_live and queue.native.way is way and bridge.lets_wake(queue)


def lacks_way(queue: AttachmentQueue) -> bool:
    """It has none, and a look could find one: its program has ways."""
    return _is_free(queue) and finding.has_ways(queue.record.provider)


def _is_free(queue: AttachmentQueue) -> bool:
    return queue.is_live and not queue.native.is_closed and queue.native.way is None


async def drop(bridge: Bridge, queue: AttachmentQueue, way: Way) -> None:
    """This way leads nowhere any more; the next look may find another."""
    if queue.native.way is not way:
        return
    queue.native.way = None
    queue.native.stir()
    await stepping.step(bridge, queue, RouteFound(bridge.clock.wall(), ""))
    bridge.start(noticing.look, bridge, queue)


async def _serve(bridge: Bridge, queue: AttachmentQueue, way: Way) -> None:
    """Offer what is due until the session ends or the way does."""
    try:
        while _is_in_use(bridge, queue, way) and not bridge.stopping.is_set():
            # Race: what comes while we look must not be slept through, so the
            # event is taken first (test_what_comes_during_an_offer_goes_next).
            news = queue.native.news
            if not await _offer_due(bridge, queue, way):
                await news.wait()
    finally:
        if queue.native.way is way:
            queue.native.way = None


async def _offer_due(bridge: Bridge, queue: AttachmentQueue, way: Way) -> bool:
    """One offer; False when there was nothing to say or no way to say it."""
    await queue.wait_for_offer()
    await offering.settle(queue, bridge.clock)
    occasion = offering.Occasion(
        route=way.route,
        budget=way.budget,
        program=bridge.program,
        roster=queue.others,
        limit=way.limit,
    )
    if not offering.is_due(queue, occasion, bridge.clock.wall()):
        return False
    if not await way.is_open():
        await drop(bridge, queue, way)
        return False
    await _ask_release(bridge, queue, occasion)
    # Race: the person may have wished otherwise while others were asked
    # (test_a_wish_that_comes_while_a_way_is_looked_at_is_heard).
    if not _is_in_use(bridge, queue, way):
        return False
    return await _offer(bridge, queue, way, occasion)


async def _ask_release(
    bridge: Bridge, queue: AttachmentQueue, occasion: offering.Occasion
) -> None:
    """The server's own word on what would be shown now; its stream's word else."""
    draft = offering.draft_offer(queue, occasion, bridge.clock)
    if draft is None or not draft.offer.message_ids:
        return
    attachment_id = queue.record.attachment_id
    try:
        with trio.fail_after(_RELEASE_S):
            caller = await bridge.link.child(attachment_id)
            said, asked_at = await api.ask_release(
                caller, attachment_id, draft.offer.message_ids
            )
    except (BridgeError, trio.TooSlowError):
        bridge.log.debug("release_not_asked", name=queue.record.name)
        return
    queue.releases = release.released(queue.releases, said.released, asked_at)
    await _withhold(bridge, queue, [(each.id, each.reason) for each in said.withheld])


async def _withhold(
    bridge: Bridge, queue: AttachmentQueue, withheld: Sequence[tuple[MessageId, str]]
) -> None:
    at = bridge.clock.wall()
    queue.releases = release.retracted(queue.releases, [id_ for id_, _ in withheld])
    async with queue.turn:
        await queue.take([(id_, Retracted(at, why)) for id_, why in withheld])


async def _offer(
    bridge: Bridge, queue: AttachmentQueue, way: Way, occasion: offering.Occasion
) -> bool:
    handed, reached = OfferId(""), _TOO_SLOW

    async def emit(offer_id: OfferId, text: str) -> OfferOutcome:
        nonlocal handed, reached
        offer = queue.offer_out
        nonce = offer.nonce if offer is not None else ""
        # The sign may come before the write returns.
        queue.guard = loopguard.handed(queue.guard, offer_id, nonce)
        handed = offer_id
        parcel = Parcel(
            offer_id, queue.record.session_id, text, nonce, queue.native.parts
        )
        reached = await unless_stopped(bridge, way.offer, parcel) or _STOPPED
        return reached.outcome

    outcome = await offering.make_offer(queue, occasion, bridge.clock, emit)
    if outcome is None:
        return False
    if reached.evidence == "native_queue":
        await _admit(bridge, queue, handed)
    await _take_note(bridge, queue, way, reached)
    return True


async def _take_note(
    bridge: Bridge, queue: AttachmentQueue, way: Way, reached: Reached
) -> None:
    """What the way said beyond the offer's outcome."""
    name, route = queue.record.name, way.route
    outcome = reached.outcome.value
    bridge.log.info(
        "offered_natively",
        name=name,
        route=route,
        outcome=outcome,
        evidence=reached.evidence,
        why=reached.reason,
    )
    code = reached.told or _TOLD.get(reached.outcome)
    if code is not None and not reached.is_busy:
        bridge.tell_person(code, name)
    if reached.evidence == "seen":
        queue.guard = loopguard.seen(queue.guard)
    # It would be asked again and again with what it just refused.
    is_no = reached.outcome is OfferOutcome.NOT_EMITTED
    if reached.told or (is_no and not reached.is_busy):
        queue.native.is_closed = True
    if reached.is_over or queue.native.is_closed or is_no:
        queue.native.why = reached.reason
        await drop(bridge, queue, way)


async def _admit(bridge: Bridge, queue: AttachmentQueue, handed: OfferId) -> None:
    """A native queue's own yes is an admission (the seeds' word).

    Race: the host may have shown the text already, so the guard does not say any
    more what was handed (test_a_queues_yes_admits_what_it_took_and_nothing_else).
    """
    at = bridge.clock.wall()
    async with queue.turn:
        rows = [row for row in queue.deliveries.values() if row.offer_id == handed]
        await queue.take(
            [(row.message_id, Admitted(at, evidence="native_queue")) for row in rows]
        )
