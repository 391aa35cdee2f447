"""One offer: saved before it is emitted, and put back whole when it was not."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
import trio

from bridge.core.events import Admitted, Retracted
from bridge.core.records import DeliveryState, OfferOutcome
from bridge.core.setup import RosterEntry
from bridge.driver.offering import EMIT_DEADLINE_S, is_due, make_offer, settle
from bridge.errors import StorageFull
from tests.core.examples import message
from tests.driver.desk import OCCASION, Desk, Route, open_desk
from tests.driver.full_journal import FullJournal

EMITTED, NOT_EMITTED, UNKNOWN = (
    OfferOutcome.EMITTED,
    OfferOutcome.NOT_EMITTED,
    OfferOutcome.UNKNOWN,
)
ID = message().message_id


def on_disk(folder: Path) -> tuple[str, str]:
    """The delivery's and the offer's state as another process reads them."""
    with sqlite3.connect(folder / "journal.sqlite3") as other:
        (delivery,) = other.execute("SELECT state FROM delivery").fetchone()
        (offer,) = other.execute("SELECT outcome FROM offer").fetchone()
    other.close()
    return delivery, offer


async def offer(desk: Desk, route: Route) -> OfferOutcome | None:
    return await make_offer(desk.queue, OCCASION, desk.clock, route.emit)


async def test_an_offer_is_saved_before_it_is_emitted(tmp_path: Path) -> None:
    seen: list[tuple[str, str]] = []

    async def emit(offer_id: str, text: str) -> OfferOutcome:
        seen.append(on_disk(tmp_path))
        return EMITTED

    async with open_desk(tmp_path) as desk:
        await desk.receive()
        await make_offer(desk.queue, OCCASION, desk.clock, emit)

        assert seen == [("offering", "out")]
        assert on_disk(tmp_path) == ("offered", "emitted")


async def test_an_emitted_message_is_never_offered_again(tmp_path: Path) -> None:
    route = Route(EMITTED)
    async with open_desk(tmp_path) as desk:
        await desk.receive()

        assert await offer(desk, route) is EMITTED
        assert await offer(desk, route) is None
        assert len(route.texts) == 1


async def test_a_message_that_was_not_emitted_comes_in_the_next_offer(
    tmp_path: Path,
) -> None:
    route = Route(NOT_EMITTED, EMITTED)
    async with open_desk(tmp_path, introduced=False) as desk:
        await desk.receive()

        assert await offer(desk, route) is NOT_EMITTED
        assert desk.queue.record.setup_at is None
        assert desk.queue.record.guidance_at is None
        assert await offer(desk, route) is EMITTED
        assert "Ready for review." in route.texts[1]
        assert desk.queue.record.setup_at is not None


async def test_who_else_is_there_is_kept_until_the_setup_text_was_said(
    tmp_path: Path,
) -> None:
    route = Route(NOT_EMITTED, EMITTED)
    others = (RosterEntry("carol", "codex"),)
    async with open_desk(tmp_path, introduced=False) as desk:
        desk.queue.others = others

        assert await offer(desk, route) is NOT_EMITTED
        assert desk.queue.others == others
        assert await offer(desk, route) is EMITTED
        assert not desk.queue.others


async def test_an_unknown_outcome_is_named_once_and_never_repeated(
    tmp_path: Path,
) -> None:
    route = Route(UNKNOWN, EMITTED)
    async with open_desk(tmp_path) as desk:
        await desk.receive()

        assert await offer(desk, route) is UNKNOWN
        assert await offer(desk, route) is EMITTED
        assert f"{ID} may not have reached you" in route.texts[1]
        assert "Ready for review." not in route.texts[1]
        assert await offer(desk, route) is None


async def test_an_unsure_id_is_named_again_when_its_offer_was_not_emitted(
    tmp_path: Path,
) -> None:
    route = Route(UNKNOWN, NOT_EMITTED, EMITTED)
    async with open_desk(tmp_path) as desk:
        await desk.receive()
        for _ in range(3):
            await offer(desk, route)

        assert f"{ID} may not have reached you" in route.texts[2]


async def test_a_silent_route_leaves_its_message_unsure(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    async def emit(offer_id: str, text: str) -> OfferOutcome:
        await trio.sleep(EMIT_DEADLINE_S * 2)
        return EMITTED

    async with open_desk(tmp_path) as desk:
        await desk.receive()

        outcome = await make_offer(desk.queue, OCCASION, desk.clock, emit)

        assert outcome is UNKNOWN
        assert desk.queue.delivery(ID).state is DeliveryState.AMBIGUOUS


async def test_a_cancelled_offer_still_shows_its_commit(tmp_path: Path) -> None:
    async with open_desk(tmp_path) as desk:
        await desk.receive()
        with trio.CancelScope() as scope:

            async def emit(offer_id: str, text: str) -> OfferOutcome:
                scope.cancel()
                return EMITTED

            await make_offer(desk.queue, OCCASION, desk.clock, emit)

        assert desk.queue.delivery(ID).state is DeliveryState.OFFERED
        assert on_disk(tmp_path) == ("offered", "emitted")


async def test_one_offer_is_out_at_a_time(tmp_path: Path) -> None:
    async with open_desk(tmp_path) as desk:
        await desk.receive(1)

        async def emit(offer_id: str, text: str) -> OfferOutcome:
            await desk.receive(2)
            assert not is_due(desk.queue, OCCASION, desk.clock.wall())
            return EMITTED

        await make_offer(desk.queue, OCCASION, desk.clock, emit)

        assert is_due(desk.queue, OCCASION, desk.clock.wall())


async def test_a_message_retracted_while_it_is_out_is_not_pending_again(
    tmp_path: Path,
) -> None:
    async with open_desk(tmp_path) as desk:
        await desk.receive()

        async def emit(offer_id: str, text: str) -> OfferOutcome:
            async with desk.queue.turn:
                await desk.queue.take([(ID, Retracted(desk.clock.wall(), "revoked"))])
            return NOT_EMITTED

        await make_offer(desk.queue, OCCASION, desk.clock, emit)

        assert desk.queue.delivery(ID).state is DeliveryState.WITHHELD


async def test_an_acknowledgement_during_the_offer_counts(tmp_path: Path) -> None:
    async with open_desk(tmp_path) as desk:
        await desk.receive()

        async def emit(offer_id: str, text: str) -> OfferOutcome:
            async with desk.queue.turn:
                await desk.queue.take([(ID, Admitted(desk.clock.wall()))])
            return UNKNOWN

        await make_offer(desk.queue, OCCASION, desk.clock, emit)

        assert desk.queue.delivery(ID).state is DeliveryState.ADMITTED


async def test_a_long_message_comes_whole_and_setup_waits(tmp_path: Path) -> None:
    route = Route(EMITTED, EMITTED)
    body = "x" * 8_600
    async with open_desk(tmp_path, introduced=False) as desk:
        await desk.receive(1, body)
        await offer(desk, route)
        await offer(desk, route)

        assert body in route.texts[0]
        assert desk.queue.record.setup_at is not None
        assert "as bob" in route.texts[1]


async def test_a_message_that_never_fits_is_a_notice_beside_setup(
    tmp_path: Path,
) -> None:
    route = Route(EMITTED)
    async with open_desk(tmp_path, introduced=False) as desk:
        await desk.receive(1, "x" * 10_001)
        await offer(desk, route)

        assert "is too large to show here" in route.texts[0]
        assert "as bob" in route.texts[0]
        assert desk.queue.delivery(ID).state is DeliveryState.OFFERED


async def test_without_the_servers_fresh_word_mail_stays_pending(
    tmp_path: Path,
) -> None:
    route = Route()
    async with open_desk(tmp_path) as desk:
        await desk.receive()
        desk.clock.advance(31.0)

        assert await offer(desk, route) is None
        assert desk.queue.delivery(ID).state is DeliveryState.PENDING


@pytest.mark.parametrize("outcome", [EMITTED, UNKNOWN])
async def test_the_server_is_told_what_was_seen_of_an_offer(
    tmp_path: Path, outcome: OfferOutcome
) -> None:
    seen = {EMITTED: "offered", UNKNOWN: "unsure"}
    async with open_desk(tmp_path) as desk:
        await desk.receive()
        await offer(desk, Route(outcome))

        (receipt,) = desk.queue.unsent_receipts()
        assert receipt.delivery == seen[outcome]


async def test_an_outcome_that_found_no_room_is_saved_later(tmp_path: Path) -> None:
    route = Route(EMITTED)
    async with open_desk(tmp_path, kind=FullJournal) as desk:
        journal = desk.journal
        assert isinstance(journal, FullJournal)
        await desk.receive(1)

        async def emit(offer_id: str, text: str) -> OfferOutcome:
            journal.has_room = False
            return EMITTED

        with pytest.raises(StorageFull):
            await make_offer(desk.queue, OCCASION, desk.clock, emit)
        journal.has_room = True
        await settle(desk.queue, desk.clock)
        await desk.receive(2, "And another.")

        assert desk.queue.delivery(ID).state is DeliveryState.OFFERED
        assert await offer(desk, route) is EMITTED
        assert "Ready for review." not in route.texts[0]


async def test_a_full_disk_offers_nothing(tmp_path: Path) -> None:
    async with open_desk(tmp_path, kind=FullJournal) as desk:
        assert isinstance(desk.journal, FullJournal)
        await desk.receive()
        desk.journal.has_room = False
        with pytest.raises(StorageFull):
            await offer(desk, Route())
        desk.journal.has_room = True

        assert await offer(desk, Route(EMITTED)) is EMITTED
