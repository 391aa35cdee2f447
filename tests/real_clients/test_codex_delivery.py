"""Messages to and from a real Codex, from the sender to the model and back."""

from __future__ import annotations

import html
import json
import re
from functools import partial

import pytest

from tests.fakes.model_server import Step
from tests.real_clients.codex_chats import (
    Talk,
    attach,
    install,
    open_talk,
    resume_talk,
)
from tests.real_clients.house import House, Script
from tests.real_clients.offers import (
    Offer,
    bodies_in,
    offers_in,
    times_remembered,
    times_seen,
)
from tests.real_clients.rig.codex import CodexRig
from tests.real_clients.rig.waiting import wait_until

pytestmark = [pytest.mark.real_client, pytest.mark.slow]

LIMIT = 9_500
"""What of one offer Codex takes whole, in bytes, with room to spare."""


@pytest.fixture
async def carol(codex: CodexRig, house: House) -> Talk:
    """A Codex attached as carol, its setup text behind it."""
    await install(house)
    talk = await open_talk(codex)
    await attach(house, talk)
    return talk


async def test_a_message_reaches_the_model_once_at_turn_end_in_our_fences(
    house: House, carol: Talk
) -> None:
    alice = await house.script()
    await alice.send("hello carol, this is alice", to="carol")
    await house.until_row("carol", pending=1)

    asked, brought = await carol.turn("what now?")
    (later,) = await carol.turn("and now?")

    (offer,) = offers_in(brought)
    assert not offers_in(asked)
    assert offer.bodies == ("hello carol, this is alice",)
    assert "not the person's instruction" in offer.text
    assert times_seen(carol.requests, "hello carol, this is alice") == 1
    assert times_remembered(later, "hello carol, this is alice") == 1


async def test_a_batch_of_9500_bytes_arrives_whole_and_one_more_byte_is_a_notice(
    house: House, carol: Talk
) -> None:
    alice = await house.script()
    around = len((await deliver(house, carol, "x", alice)).text.encode()) - 1

    largest = "y" * (LIMIT - around)
    whole = await deliver(house, carol, largest, alice)
    too_large = await deliver(house, carol, largest + "z", alice)

    assert len(whole.text.encode()) == LIMIT
    assert whole.bodies == (largest,)
    assert too_large.bodies == ()
    assert "is too large to show here" in too_large.text
    assert len(too_large.message_ids) == 1


async def test_the_longest_message_is_read_whole_in_parts(
    house: House, carol: Talk
) -> None:
    """Codex cuts a tool's result in the middle where it is too long."""
    alice = await house.script()
    longest = "".join(f"{number:05}" for number in range(4_000))
    notice = await deliver(house, carol, longest, alice)
    hint = re.search(r"agent_message_read\(after=(\d+)\)", notice.text)
    assert hint is not None

    read, after = "", int(hint[1])
    while len(read) < len(longest):
        said = await carol.call("read", after=after, start=len(read))
        page = json.loads(said.partition("Output:\n")[2])
        read += page["messages"][0]["message"]

    assert read == longest
    assert page["next_cursor"] > after


@pytest.mark.parametrize(("letter", "bytes_each"), [("<", len("&lt;")), ("界", 3)])
async def test_the_limit_counts_the_bytes_that_codex_makes_of_a_text(
    house: House, carol: Talk, letter: str, bytes_each: int
) -> None:
    alice = await house.script()
    many = letter * (8_000 // bytes_each)

    whole = await deliver(house, carol, many, alice)
    too_large = await deliver(house, carol, letter * (9_500 // bytes_each), alice)

    assert [html.unescape(body) for body in whole.bodies] == [many]
    assert "is too large to show here" in too_large.text


async def test_mail_continues_a_turn_five_times_in_a_row_and_no_more(
    house: House, carol: Talk
) -> None:
    alice = await house.script()
    model = carol.codex.model
    model.enqueue(*(Step(hold=f"{n}", when=f"mail {n}") for n in range(5)))
    await alice.send("mail 0", to="carol")
    await house.until_row("carol", pending=1)

    async with carol.turning("go"):
        for n in range(5):
            await wait_until(partial(model.turns, "", f"mail {n}"), f"mail {n}")
            await alice.send(f"mail {n + 1}", to="carol")
            await house.until_row("carol", pending=1)
            model.release(f"{n}")
    waiting = await house.row("carol")
    await carol.turn("go on")

    assert waiting["pending"] == 1
    assert "it comes in the next turn" in waiting["why"]
    assert carol.bodies == [f"mail {n}" for n in range(6)]


async def test_a_continuation_brings_only_mail_that_came_since(
    house: House, carol: Talk
) -> None:
    alice = await house.script()
    for letter in "ab":
        await alice.send(letter * 6_000, to="carol")
    await house.until_row("carol", pending=2)

    first = await carol.turn("one")
    waiting = await house.row("carol")
    second = await carol.turn("two")

    assert bodies_in(first) == ["a" * 6_000]
    assert waiting["pending"] == 1
    assert bodies_in(second) == ["b" * 6_000]


async def test_a_daemon_killed_between_turns_loses_nothing_and_repeats_nothing(
    house: House, carol: Talk
) -> None:
    alice = await house.script()
    await alice.send("before", to="carol")
    await house.until_row("carol", pending=1)
    await carol.turn("one")
    await alice.send("waiting", to="carol")
    await house.until_row("carol", pending=1)

    await house.kill()
    silent = await carol.turn("two")
    await house.start()
    await house.until_row("carol", state="attached", pending=1)
    await carol.turn("three")
    await carol.turn("four")

    assert bodies_in(silent) == []
    assert carol.bodies == ["before", "waiting"]
    assert times_seen(carol.requests, "may not have reached you") == 0


async def test_a_resumed_thread_gets_nothing_until_it_is_attached_again(
    codex: CodexRig, house: House, carol: Talk
) -> None:
    alice = await house.script()
    await carol.host.quit()
    await house.until_row("carol", state="offline")
    await alice.send("while you were away", to="carol")

    again = await resume_talk(codex, "again", carol.thread_id)
    before = await again.turn("good evening")
    offline = await house.row("carol")
    await again.command(" /agentworks attach", "Attached again as carol")
    await house.until_row("carol", state="attached", pending=1)
    _, brought = await again.turn("and now?")

    assert bodies_in(before) == []
    assert offline["state"] == "offline"
    assert again.thread_id == carol.thread_id
    assert bodies_in([brought]) == ["while you were away"]
    assert "The person attached this chat" not in brought.new_text


async def deliver(house: House, talk: Talk, body: str, alice: Script) -> Offer:
    """One message to carol and the turn that brings it."""
    await alice.send(body, to="carol")
    await house.until_row("carol", pending=1)
    _, brought = await talk.turn("next")
    (offer,) = offers_in(brought)
    return offer
