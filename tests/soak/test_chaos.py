"""A seed decides what is done and when; the kills leave time to look."""

from __future__ import annotations

from tests.soak.chaos import KILLS_UNTIL, plan
from tests.soak.dice import Dice

SECONDS = 120.0


def test_the_same_seed_gives_the_same_plan() -> None:
    first, again = (plan(Dice("7", "chaos"), SECONDS) for _ in range(2))

    assert first == again
    assert first != plan(Dice("8", "chaos"), SECONDS)


def test_every_kind_of_strike_comes_within_two_minutes() -> None:
    kinds = {each.kind for each in plan(Dice("7", "chaos"), SECONDS)}

    assert {"kill_bridge", "kill_server", "freeze_bridge", "freeze_server"} <= kinds
    assert {"cut", "tear", "silence", "attack", "move", "die", "unregister"} <= kinds


def test_kills_are_over_before_the_processes_are_watched() -> None:
    for seed in range(50):
        kills = [
            each.at
            for each in plan(Dice(str(seed), "chaos"), SECONDS)
            if each.kind.startswith("kill_")
        ]

        assert len(kills) >= 4
        assert max(kills) < KILLS_UNTIL * SECONDS


def test_dice_fall_within_their_bounds() -> None:
    dice = Dice("7", "dice")
    rolls = [dice.between(2, 3) for _ in range(1_000)]

    assert 2 <= min(rolls) < 2.1
    assert 2.9 < max(rolls) < 3
    assert {dice.weighted({"a": 1, "never": 0, "b": 3}) for _ in range(200)} == {
        "a",
        "b",
    }
    assert len(dice.letters(1_000)) == 1_000
