"""Waking: nothing is lost, duplicates collapse, slices are bounded."""

from __future__ import annotations

from collections import Counter

import pytest
import trio

from bridge.server.wakes import Hub

SLICE = 50


class Turns(trio.abc.Instrument):
    """Counts the turns of the event loop."""

    def __init__(self) -> None:
        self.number = 0

    def before_io_wait(self, timeout: float) -> None:
        self.number += 1


async def test_everyone_waiting_for_a_key_is_woken_in_slices(
    nursery: trio.Nursery,
) -> None:
    hub = Hub(SLICE)
    turns = Turns()
    woken_in: Counter[int] = Counter()

    async def wait() -> None:
        with hub.subscribe("bob") as subscription:
            await subscription.wait()
            woken_in[turns.number] += 1

    for _ in range(120):
        nursery.start_soon(wait)
    nursery.start_soon(hub.run)
    await trio.testing.wait_all_tasks_blocked()
    trio.lowlevel.add_instrument(turns)
    hub.notify(["bob"])
    await trio.testing.wait_all_tasks_blocked()
    trio.lowlevel.remove_instrument(turns)

    assert sorted(woken_in.values()) == [20, 50, 50]
    assert hub.statistics() == {"waiting": 0, "due": 0}


async def test_a_wake_during_a_look_is_not_lost(nursery: trio.Nursery) -> None:
    hub = Hub(SLICE)
    nursery.start_soon(hub.run)
    with hub.subscribe("bob") as subscription:
        hub.notify(["bob"])
        await subscription.wait()
        # The waiter looks now, and something happens meanwhile.
        hub.notify(["bob"])
        await trio.testing.wait_all_tasks_blocked()

        with trio.fail_after(5):
            await subscription.wait()


async def test_many_wakes_are_one(nursery: trio.Nursery) -> None:
    hub = Hub(SLICE)
    with hub.subscribe("bob") as subscription:
        for _ in range(10):
            hub.notify(["bob", "alice", "bob"])
        assert hub.statistics() == {"waiting": 1, "due": 1}
        nursery.start_soon(hub.run)
        await subscription.wait()
        await trio.testing.wait_all_tasks_blocked()

        with trio.move_on_after(0) as waited:
            await subscription.wait()

    assert waited.cancelled_caught


async def test_another_key_wakes_nobody() -> None:
    hub = Hub(SLICE)
    with hub.subscribe("bob"):
        hub.notify(["alice"])

        assert hub.statistics() == {"waiting": 1, "due": 0}


async def test_a_waiter_that_leaves_is_forgotten() -> None:
    hub = Hub(SLICE)
    with hub.subscribe("bob"):
        hub.notify(["bob"])

    assert hub.statistics() == {"waiting": 0, "due": 0}


@pytest.mark.parametrize("count", [0, 3])
async def test_stopping_wakes_all(nursery: trio.Nursery, count: int) -> None:
    hub = Hub(SLICE)
    nursery.start_soon(hub.run)
    woken: list[str] = []

    async def wait(key: str) -> None:
        with hub.subscribe(key) as subscription:
            await subscription.wait()
            woken.append(key)

    for number in range(count):
        nursery.start_soon(wait, f"{number}")
    await trio.testing.wait_all_tasks_blocked()
    hub.notify_all()
    await trio.testing.wait_all_tasks_blocked()

    assert len(woken) == count
