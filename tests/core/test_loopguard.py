"""When a hook may offer, and whether what it printed reached the agent."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.core.caller import HookEvent, HookInput
from bridge.core.ids import OfferId, SessionId
from bridge.core.loopguard import (
    Guard,
    Hearing,
    Verdict,
    handed,
    hear,
    policy,
    printed,
    seen,
    tool_called,
)

OFFER = OfferId("offer-1")


def ended(
    provider: str = "claude", is_continuation: bool = False, turn_id: str = ""
) -> HookInput:
    return HookInput(
        provider,
        HookEvent.TURN_ENDED,
        SessionId("session-1"),
        is_continuation=is_continuation,
        turn_id=turn_id,
    )


def other(event: HookEvent, is_subagent: bool = False) -> HookInput:
    return HookInput("claude", event, SessionId("session-1"), is_subagent=is_subagent)


def after_offer(turn_id: str = "") -> Guard:
    return printed(hear(Guard(), ended(turn_id=turn_id), 1.0).guard, OFFER)


def continued(times: int, provider: str = "claude") -> Hearing:
    """The last of a turn's ends, each but the first a continuation."""
    hearing = hear(Guard(), ended(provider), 0.0)
    for number in range(1, times + 1):
        said = ended(provider, is_continuation=True)
        hearing = hear(hearing.guard, said, float(number))
    return hearing


def test_claude_is_offered_nothing_once_eight_continuations_are_used_up() -> None:
    assert [continued(times).verdict for times in (0, 7, 8, 9)] == [
        Verdict.OFFER,
        Verdict.OFFER,
        Verdict.LIMIT_REACHED,
        Verdict.LIMIT_REACHED,
    ]


def test_the_next_turn_starts_the_count_again() -> None:
    hearing = hear(continued(8).guard, ended(), 10.0)

    assert hearing.verdict is Verdict.OFFER
    assert hearing.guard.continuations == 0


def test_a_prompt_in_the_middle_of_a_turn_does_not_start_the_count_again() -> None:
    prompted = hear(continued(7).guard, other(HookEvent.PROMPT), 10.0)
    assert prompted.verdict is Verdict.NOT_A_TURN_END

    last = hear(prompted.guard, ended(is_continuation=True), 11.0)

    assert last.verdict is Verdict.LIMIT_REACHED


def test_a_tool_call_starts_claudes_count_again_and_nobody_elses() -> None:
    guard = tool_called(continued(8).guard, "claude")
    assert hear(guard, ended(is_continuation=True), 10.0).verdict is Verdict.OFFER

    guard = tool_called(continued(5, "codex").guard, "codex")
    verdict = hear(guard, ended("codex", is_continuation=True), 10.0).verdict
    assert verdict is Verdict.LIMIT_REACHED


def test_codex_goes_on_five_times_and_only_for_new_mail() -> None:
    first = continued(0, "codex")
    assert first.verdict is Verdict.OFFER
    assert first.only_since is None

    fourth = continued(4, "codex")
    assert fourth.verdict is Verdict.ONLY_NEW
    assert fourth.only_since == 3.0
    assert continued(5, "codex").verdict is Verdict.LIMIT_REACHED


def test_after_a_restart_in_a_turn_no_mail_counts_as_new() -> None:
    hearing = hear(Guard(), ended("codex", is_continuation=True), 7.0)

    assert hearing.verdict is Verdict.ONLY_NEW
    assert hearing.only_since == 7.0


def test_a_script_may_always_ask() -> None:
    assert continued(100, "script").verdict is Verdict.OFFER
    assert policy("script").limit is None


def test_a_scripts_next_turn_end_says_nothing_about_what_was_printed() -> None:
    first = printed(hear(Guard(), ended("script"), 1.0).guard, OFFER)

    hearing = hear(first, ended("script"), 2.0)

    assert hearing.confirmed is None
    assert hearing.unconfirmed is None
    assert hearing.guard.printed is None


def test_a_subagent_is_offered_nothing_and_changes_nothing() -> None:
    guard = after_offer()

    hearing = hear(guard, other(HookEvent.TURN_ENDED, is_subagent=True), 2.0)

    assert hearing == Hearing(guard, Verdict.SUBAGENT)


@pytest.mark.parametrize(
    "event", [e for e in HookEvent if e not in (HookEvent.PROMPT, HookEvent.TURN_ENDED)]
)
def test_nothing_is_offered_at_other_events(event: HookEvent) -> None:
    guard = after_offer()

    assert hear(guard, other(event), 2.0) == Hearing(guard, Verdict.NOT_A_TURN_END)


def test_going_on_in_the_same_turn_confirms_the_printed_offer() -> None:
    hearing = hear(after_offer("t1"), ended(is_continuation=True, turn_id="t1"), 2.0)

    assert hearing.confirmed == OFFER
    assert hearing.unconfirmed is None
    assert hearing.guard.confirmed == OFFER
    assert hearing.guard.printed is None


@pytest.mark.parametrize(
    "said",
    [
        ended(turn_id="t1"),
        ended(turn_id="t2"),
        ended(is_continuation=True, turn_id="t2"),
    ],
)
def test_any_other_turn_end_says_that_the_offer_did_not_arrive(said: HookInput) -> None:
    hearing = hear(after_offer("t1"), said, 2.0)

    assert hearing.unconfirmed == OFFER
    assert hearing.confirmed is None
    assert hearing.guard.confirmed is None
    assert hear(hearing.guard, said, 3.0).unconfirmed is None


def test_without_named_turns_a_prompt_in_between_makes_the_sign_worthless() -> None:
    said = ended(is_continuation=True)
    assert hear(after_offer(), said, 2.0).confirmed == OFFER

    prompted = hear(after_offer(), other(HookEvent.PROMPT), 2.0).guard

    assert hear(prompted, said, 3.0).unconfirmed == OFFER


def test_a_named_turn_survives_a_prompt_in_its_middle() -> None:
    prompted = hear(after_offer("t1"), other(HookEvent.PROMPT), 2.0).guard

    hearing = hear(prompted, ended(is_continuation=True, turn_id="t1"), 3.0)

    assert hearing.confirmed == OFFER


def test_the_guard_remembers_its_verdict_for_the_table_of_agents() -> None:
    assert continued(8).guard.verdict is Verdict.LIMIT_REACHED
    assert continued(1, "codex").guard.verdict is Verdict.ONLY_NEW


@given(st.lists(st.sampled_from(["stop", "prompt", "tool"]), max_size=60))
def test_claude_never_drops_what_was_printed(story: list[str]) -> None:
    """A host that counts as Claude does; each offer makes the turn go on."""
    guard, host_count, goes_on = Guard(), 0, False
    for at, what in enumerate(story):
        if what == "prompt":
            guard = hear(guard, other(HookEvent.PROMPT), float(at)).guard
            continue
        if what == "tool":
            host_count = 0
            guard = tool_called(guard, "claude")
            continue
        hearing = hear(guard, ended(is_continuation=goes_on), float(at))
        assert hearing.unconfirmed is None or "prompt" in story
        guard, goes_on = hearing.guard, hearing.verdict is Verdict.OFFER
        if goes_on:
            host_count += 1
            guard = printed(guard, OfferId(f"offer-{at}"))
            assert host_count <= 8
        else:
            host_count = 0


def prompted(text: str, is_subagent: bool = False) -> HookInput:
    return HookInput(
        "claude",
        HookEvent.PROMPT,
        SessionId("session-1"),
        prompt=text,
        is_subagent=is_subagent,
    )


def test_what_went_a_native_way_is_confirmed_by_the_prompt_that_shows_it() -> None:
    guard = handed(Guard(), OFFER, "0123456789abcdef")

    hearing = hear(guard, prompted("AgentWorks [0123456789abcdef] for bob"), 1.0)

    assert (hearing.confirmed, hearing.guard.confirmed) == (OFFER, OFFER)
    again = hear(hearing.guard, prompted("[0123456789abcdef] once more"), 2.0)
    assert again.confirmed is None


@pytest.mark.parametrize(
    "said",
    [
        prompted("a prompt of the person"),
        prompted("[0123456789abcdef]", is_subagent=True),
        ended(),
        ended(is_continuation=True),
        other(HookEvent.SESSION_STARTED),
    ],
)
def test_nothing_else_speaks_of_what_went_a_native_way(said: HookInput) -> None:
    guard = handed(Guard(), OFFER, "0123456789abcdef")

    hearing = hear(guard, said, 1.0)

    assert (hearing.confirmed, hearing.unconfirmed) == (None, None)
    assert hearing.guard.handed == OFFER


# ---- a sign in a later prompt, and what a host counts itself -------------------------


def prompt(text: str) -> HookInput:
    return HookInput(
        "gemini", HookEvent.PROMPT, SessionId("session-1"), prompt=f"so: {text}"
    )


def test_a_prompt_that_shows_the_printed_text_confirms_it() -> None:
    guard = printed(hear(Guard(), ended("gemini"), 1.0).guard, OFFER, "nonce-1")

    hearing = hear(guard, prompt("[nonce-1] for bob"), 2.0)

    assert (hearing.confirmed, hearing.guard.confirmed) == (OFFER, OFFER)
    assert hear(hearing.guard, ended("gemini"), 3.0).unconfirmed is None


def test_a_prompt_without_it_confirms_nothing() -> None:
    guard = printed(hear(Guard(), ended("gemini"), 1.0).guard, OFFER, "nonce-1")

    hearing = hear(guard, prompt("something else"), 2.0)

    assert hearing.confirmed is None
    assert hear(hearing.guard, ended("gemini"), 3.0).unconfirmed == OFFER


def test_what_the_native_way_has_seen_is_confirmed_once() -> None:
    shown = seen(handed(Guard(), OFFER, "nonce-1"))

    assert (shown.confirmed, shown.handed, shown.handed_nonce) == (OFFER, None, "")
    assert seen(Guard()) == Guard()


def test_a_turn_that_was_cut_off_is_offered_nothing() -> None:
    cut = msgspec.structs.replace(ended("cursor"), may_drain=False)

    assert hear(Guard(), cut, 1.0).verdict is Verdict.INTERRUPTED


@pytest.mark.parametrize(
    ("count", "verdict"),
    [(0, Verdict.OFFER), (1, Verdict.ONLY_NEW), (5, Verdict.LIMIT_REACHED)],
)
def test_a_hosts_own_count_wins(count: int, verdict: Verdict) -> None:
    said = msgspec.structs.replace(ended("cursor"), continuations=count)

    hearing = hear(Guard(continuations=3), said, 1.0)
    assert (hearing.verdict, hearing.guard.continuations) == (verdict, count)
