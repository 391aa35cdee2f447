"""The hourly sweep."""

from __future__ import annotations

from sqlalchemy import func, select

from bridge.server.retention import sweep
from bridge.server.schema import (
    access_tokens,
    messages,
    receipts,
    refresh_tokens,
    submissions,
)
from bridge.server.store import Unit
from tests.fakes.message_server import Served, good

MONTH_S = 30 * 86_400.0


def counts(unit: Unit) -> dict[str, int]:
    tables = (access_tokens, messages, receipts, refresh_tokens, submissions)
    return {
        table.name: unit.value(select(func.count()).select_from(table))
        for table in tables
    }


async def test_the_sweep_forgets_what_ended_and_never_a_message(
    server: Served,
) -> None:
    alice, bob = await server.attach("alice"), await server.attach("bob")
    sent = good(await alice.send("bob", "hello", "one"))
    await bob.say(sent["message_id"], "admitted")
    await server.change(sweep)
    before = await server.change(counts)

    server.clock.advance(3_601.0)
    await server.change(sweep)
    after_an_hour = await server.change(counts)
    server.clock.advance(MONTH_S)
    await server.change(sweep)
    after_a_month = await server.change(counts)

    assert before == {
        "access_tokens": 3,
        "messages": 1,
        "receipts": 1,
        "refresh_tokens": 2,
        "submissions": 1,
    }
    # The parent's token does not expire.
    assert after_an_hour == {**before, "access_tokens": 1}
    assert after_a_month == {
        "access_tokens": 1,
        "messages": 1,
        "receipts": 0,
        "refresh_tokens": 0,
        "submissions": 0,
    }
