"""The lines between the bridge and an extension: one attempt, an honest outcome."""

from __future__ import annotations

from contextlib import suppress

import msgspec
import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from bridge.core.ids import OfferId, SessionId
from bridge.core.records import OfferOutcome
from bridge.core.routing import Parcel, Part, Reached
from bridge.errors import Invalid, Unavailable
from bridge.routes.adapter import ANSWER_S, LINE_LIMIT, AdapterWay, Lines, Said

EMITTED, NOT_EMITTED, UNKNOWN = (
    OfferOutcome.EMITTED,
    OfferOutcome.NOT_EMITTED,
    OfferOutcome.UNKNOWN,
)


class Wire:
    """The sending half of a connection; it fails when it is cut."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []
        self.is_cut = False
        self.written = trio.Event()

    async def send(self, frame: bytes) -> None:
        """See Writer."""
        await trio.lowlevel.checkpoint()
        if self.is_cut:
            raise Unavailable("peer_gone", "It has gone away.")
        self.frames.append(frame)
        self.written.set()


def parcel(number: int = 1) -> Parcel:
    text = f"offer {number}\nwith a second line"
    return Parcel(
        OfferId(f"offer-{number}"), SessionId("s"), text, "n", (Part("head", text),)
    )


def new_way(wire: Wire) -> AdapterWay:
    return AdapterWay("pi", SessionId("session-1"), 42, wire)


async def offered(way: AdapterWay, wire: Wire, *answers: Said) -> Reached:
    """One offer, and what the extension says once it has it."""
    results: list[Reached] = []

    async def offer() -> None:
        results.append(await way.offer(parcel()))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(offer)
        await wire.written.wait()
        for said in answers:
            way.hear(said)
    return results[0]


async def test_an_offer_is_one_line_with_its_id_and_its_whole_text() -> None:
    wire = Wire()
    way = new_way(wire)
    reached = await offered(way, wire, Said(emitted="offer-1"))

    (frame,) = wire.frames
    assert frame.count(b"\n") == 1
    assert frame.endswith(b"\n")
    assert msgspec.json.decode(frame) == {"offer": "offer-1", "text": parcel().text}
    assert reached == Reached(EMITTED)
    assert await way.is_open()
    assert way.address == "pi+extension://42/session-1"


async def test_a_refusal_comes_with_the_extensions_own_reason() -> None:
    wire = Wire()
    said = Said(not_emitted="offer-1", reason="no such chat" + "." * 1000)
    reached = await offered(new_way(wire), wire, said)

    assert reached.outcome is NOT_EMITTED
    assert reached.reason.startswith("no such chat")
    assert len(reached.reason) == 200


async def test_an_answer_to_another_offer_is_no_answer() -> None:
    wire = Wire()
    others = [Said(emitted="offer-0"), Said(), Said(idle=True), Said(emitted="offer-1")]
    assert (await offered(new_way(wire), wire, *others)).outcome is EMITTED


async def test_silence_makes_the_outcome_unknown_and_ends_the_way(
    autojump_clock: trio.testing.MockClock,
) -> None:
    wire = Wire()
    way = new_way(wire)
    began = trio.current_time()
    reached = await way.offer(parcel())

    assert trio.current_time() - began == pytest.approx(ANSWER_S)
    assert (reached.outcome, reached.is_over) == (UNKNOWN, True)
    assert way.over.is_set()
    way.hear(Said(emitted="offer-1"))  # too late: nobody asks any more
    assert not await way.is_open()


async def test_a_connection_that_closes_before_the_answer_leaves_it_unknown() -> None:
    wire = Wire()
    way = new_way(wire)
    results: list[Reached] = []

    async def offer() -> None:
        results.append(await way.offer(parcel()))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(offer)
        await wire.written.wait()
        way.end()
    assert (results[0].outcome, results[0].is_over) == (UNKNOWN, True)


async def test_a_write_that_failed_may_have_written_something() -> None:
    wire = Wire()
    wire.is_cut = True
    reached = await new_way(wire).offer(parcel())
    assert (reached.outcome, reached.is_over) == (UNKNOWN, True)


async def test_nothing_is_written_to_a_connection_that_is_closed() -> None:
    wire = Wire()
    way = new_way(wire)
    way.end()
    reached = await way.offer(parcel())
    assert (reached.outcome, reached.is_over) == (NOT_EMITTED, True)
    assert wire.frames == []


async def test_one_offer_is_out_at_a_time() -> None:
    wire = Wire()
    way = new_way(wire)
    outcomes: list[OfferOutcome] = []

    async def offer(number: int) -> None:
        outcomes.append((await way.offer(parcel(number))).outcome)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(offer, 1)
        await wire.written.wait()
        nursery.start_soon(offer, 2)
        await trio.testing.wait_all_tasks_blocked()
        assert len(wire.frames) == 1
        wire.written = trio.Event()
        way.hear(Said(emitted="offer-1"))
        await wire.written.wait()
        way.hear(Said(not_emitted="offer-2"))
    assert outcomes == [EMITTED, NOT_EMITTED]


# ---- lines -------------------------------------------------------------------------


@given(st.lists(st.booleans(), max_size=8), st.integers(1, 7))
def test_lines_are_the_same_however_they_arrive(idle: list[bool], size: int) -> None:
    said = [Said(idle=each) for each in idle]
    text = b"".join(msgspec.json.encode(each) + b"\n" for each in said)
    lines, heard = Lines(), []
    for start in range(0, len(text), size):
        heard += lines.feed(text[start : start + size])
    assert heard == said


@given(st.binary(max_size=200))
def test_any_bytes_are_lines_or_invalid(text: bytes) -> None:
    heard: list[Said] = []
    with suppress(Invalid):
        heard = Lines().feed(text)
    assert len(heard) in (0, text.count(b"\n"))


@pytest.mark.parametrize(
    "line", [b"no JSON\n", b"[]\n", b'{"idle":1}\n', b'{"emitted":null}\n', b"\n"]
)
def test_a_line_that_is_no_answer_is_invalid(line: bytes) -> None:
    with pytest.raises(Invalid):
        Lines().feed(line)


def test_a_line_without_an_end_is_not_kept_for_ever() -> None:
    lines = Lines()
    lines.feed(b"x" * LINE_LIMIT)
    with pytest.raises(Invalid):
        lines.feed(b"x")


def test_a_newer_extension_may_say_more() -> None:
    assert Lines().feed(b'{"idle":true,"mood":"fine"}\n') == [Said(idle=True)]
