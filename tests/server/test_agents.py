"""Names: purposes and progress."""

from __future__ import annotations

import pytest

from tests.fakes.message_server import Served, good, refusal


async def test_a_purpose_is_set_and_shown(server: Served) -> None:
    bob = await server.attach("bob")

    answer = good(await bob.put_purpose("  Reviews changes  "))

    assert answer == {"purpose": "Reviews changes"}
    assert (await server.agents())["bob"]["purpose"] == "Reviews changes"


async def test_a_purpose_changes_at_most_once_a_minute(server: Served) -> None:
    bob = await server.attach("bob")
    good(await bob.put_purpose("one"))
    server.clock.advance(20.0)

    same = await bob.put_purpose("one")
    other = await bob.put_purpose("two")

    assert good(same) == {"purpose": "one"}
    assert refusal(other, 429)["code"] == "purpose_rate"
    assert other.headers["retry-after"] == "40"
    server.clock.advance(40.0)
    good(await bob.put_purpose("two"))


@pytest.mark.parametrize("text", ["x" * 512, "é" * 512])
async def test_a_purpose_has_up_to_512_characters(server: Served, text: str) -> None:
    bob = await server.attach("bob")

    assert good(await bob.put_purpose(text)) == {"purpose": text}


@pytest.mark.parametrize("text", ["", " ", "x" * 513, "a\nb", "a\x1b[31m", "a\u202eb"])
async def test_a_purpose_is_one_printable_line(server: Served, text: str) -> None:
    bob = await server.attach("bob")

    assert refusal(await bob.put_purpose(text), 422)["code"] == "invalid_purpose"


async def test_progress_only_rises(server: Served) -> None:
    alice, bob = await server.attach("alice"), await server.attach("bob")
    for number in range(3):
        good(await alice.send("bob", f"{number}", f"{number}"))

    reached = [
        good(await bob.post("progress", {"offered_through": through}))
        for through in (500_000_002, 500_000_001, 0)
    ]
    beyond = await bob.post("progress", {"offered_through": 500_000_004})
    below = await bob.post("progress", {"offered_through": 3})
    again = await server.attach("bob")

    assert reached == [{"offered_through": 500_000_002}] * 3
    assert refusal(beyond, 422)["code"] == "invalid_progress"
    assert refusal(below, 422)["code"] == "invalid_progress"
    assert again.answer["offered_through"] == 500_000_002
