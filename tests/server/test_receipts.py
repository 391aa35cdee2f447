"""Receipts: never lowered, observations apart, told to the sender by number."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from tests.fakes.message_server import Served, good, refusal

RECEIPTS = ("typed", "admitted", "processed")


async def sent_to_bob(server: Served) -> tuple[Any, Any, str]:
    alice, bob = await server.attach("alice"), await server.attach("bob")
    sent = good(await alice.send("bob", "hello", "one"))
    return alice, bob, sent["message_id"]


async def test_a_receipt_is_recorded_and_seen_by_the_sender(server: Served) -> None:
    alice, bob, message_id = await sent_to_bob(server)

    answer = await bob.say(message_id, "admitted")

    assert answer == {
        "recorded": [
            {"message_id": message_id, "delivery": "admitted", "observed": ""}
        ],
        "unknown": [],
    }
    assert good(await alice.get("sent/one"))["delivery"] == "admitted"


@pytest.mark.parametrize("order", list(permutations(RECEIPTS)))
async def test_a_receipt_is_never_lowered(
    server: Served, order: tuple[str, ...]
) -> None:
    alice, bob, message_id = await sent_to_bob(server)

    for delivery in (*order, *order):
        await bob.say(message_id, delivery)

    assert good(await alice.get("sent/one"))["delivery"] == "processed"


async def test_observations_are_kept_apart_from_receipts(server: Served) -> None:
    alice, bob, message_id = await sent_to_bob(server)

    for delivery in ("offered", "unsure", "offered"):
        answer = await bob.say(message_id, delivery)

    assert answer["recorded"][0] == {
        "message_id": message_id,
        "delivery": "stored",
        "observed": "unsure",
    }
    status = good(await alice.get("sent/one"))
    assert (status["delivery"], status["observed"]) == ("stored", "unsure")


async def test_each_rise_is_told_once_by_its_own_number(server: Served) -> None:
    alice, bob, message_id = await sent_to_bob(server)
    second = good(await alice.send("bob", "again", "two"))["message_id"]
    async with alice.stream(0) as stream:
        await stream.until("alive")
        for delivery in ("offered", "admitted", "admitted", "processed", "admitted"):
            await bob.say(message_id, delivery)
        await bob.say(second, "processed")

        told = [await stream.next_of("receipt") for _ in range(3)]

    expected = [
        {"number": 1, "message_id": message_id, "delivery": "admitted"},
        {"number": 2, "message_id": message_id, "delivery": "processed"},
        {"number": 3, "message_id": second, "delivery": "processed"},
    ]
    assert told == expected
    async with alice.stream(0, receipts_after=1) as stream:
        replayed = await stream.until("alive")
    assert [body for name, body in replayed if name == "receipt"] == expected[1:]


async def test_ids_of_another_mailbox_do_not_fail_the_rest(server: Served) -> None:
    alice, bob, message_id = await sent_to_bob(server)
    signs = [
        {"message_id": "msg-none", "delivery": "admitted", "at": 1.0},
        {"message_id": message_id, "delivery": "admitted", "at": 1.0},
        {"message_id": message_id, "delivery": "processed", "at": 2.0},
    ]

    answer = good(await bob.post("receipts", {"receipts": signs}))
    foreign = good(await alice.post("receipts", {"receipts": signs}))

    assert answer["unknown"] == ["msg-none"]
    assert answer["recorded"] == [
        {"message_id": message_id, "delivery": "processed", "observed": ""}
    ]
    assert foreign == {"recorded": [], "unknown": ["msg-none", message_id]}


@pytest.mark.parametrize("delivery", ["stored", "read", ""])
async def test_an_unknown_delivery_is_refused(server: Served, delivery: str) -> None:
    _, bob, message_id = await sent_to_bob(server)
    sign = {"message_id": message_id, "delivery": delivery, "at": 1.0}

    answer = await bob.post("receipts", {"receipts": [sign]})

    assert refusal(answer, 400)["code"] == "invalid_arguments"


async def test_receipts_are_taken_while_offline(server: Served) -> None:
    alice, bob, message_id = await sent_to_bob(server)
    good(await bob.post("offline", {}))

    await bob.say(message_id, "admitted")

    assert good(await alice.get("sent/one"))["delivery"] == "admitted"
