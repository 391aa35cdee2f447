"""When a hook may offer, and what the host's next sign says about the last offer.

Owns the rule that no chat is kept running by mail alone, and the rule that
printed is not delivered. Promises that nothing is offered where the host would
drop it as one continuation too many, and that an offer counts as confirmed only
when the host goes on in the same turn because of it.

A host that shows `is_continuation` ends a turn with it exactly when a hook's
text made the turn go on. A turn end without it starts the count again; a prompt
does not, since some hosts send one in the middle of a turn.

A second installation of the hook asks twice about one turn end; the driver hears
only the first.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from bridge.core.caller import HookEvent, HookInput
from bridge.core.ids import OfferId


class Policy(Struct, frozen=True):
    """What one provider's host allows.

    `limit`: most continuations in a row, None for no limit. `tool_call_resets`:
    a tool call of the session starts the count again. `only_new`: in a
    continuation only mail that came since the turn's previous end.
    `shows_sign`: the next event tells whether what was printed was used.
    """

    limit: int | None
    tool_call_resets: bool = False
    only_new: bool = False
    shows_sign: bool = True


# Claude Code drops a hook's text after 8 continuations in a row, whosever hooks
# made them, and counts anew after a tool call.
_POLICIES = {
    "claude": Policy(8, tool_call_resets=True),
    # A script reads what is printed itself, and ends as many turns as it likes.
    "script": Policy(None, shows_sign=False),
    # Cursor does not even start a hook at its own limit, 5 unless our entry says so.
    "cursor": Policy(5, only_new=True),
    # Kimi Code takes one continuation in a turn and then asks no hook any more.
    "kimi": Policy(1, shows_sign=False),
    # Antigravity shows no flag; it is asked only when a turn ended by itself.
    "agy": Policy(None, shows_sign=False),
    # Their extensions of ours hand over what waits; they print nothing.
    "pi": Policy(None, shows_sign=False),
    "opencode": Policy(None, shows_sign=False),
}
# Hosts that show the flag and have no limit of their own (Codex: 3 in a row ran).
_OTHERS = Policy(5, only_new=True)


class Verdict(StrEnum):
    """Whether mail may be offered at this event, and if not, why."""

    OFFER = "offer"
    ONLY_NEW = "only_new"
    LIMIT_REACHED = "limit_reached"
    SUBAGENT = "subagent"
    INTERRUPTED = "interrupted"
    NOT_A_TURN_END = "not_a_turn_end"


class Guard(Struct, frozen=True):
    """What is remembered of one session between its hooks; lost at a restart.

    `printed` is the offer that waits for the host's sign, given in `printed_turn`
    (empty where the host names no turns), and `nonce` marks its text; `prompted`
    that a prompt came since. `handed` went a native way with `handed_nonce`: only a
    prompt that shows it is a sign, and nothing contradicts it. `confirmed` is the
    last offer that the host's sign confirmed.
    """

    continuations: int = 0
    turn_id: str = ""
    ended_at: float | None = None
    printed: OfferId | None = None
    printed_turn: str = ""
    nonce: str = ""
    prompted: bool = False
    handed: OfferId | None = None
    handed_nonce: str = ""
    confirmed: OfferId | None = None
    verdict: Verdict = Verdict.OFFER


class Hearing(Struct, frozen=True):
    """What one hook event means: the next guard, the verdict, the evidence.

    `only_since` (wall seconds) goes with ONLY_NEW: mail that came before waits;
    after a restart, when the turn's previous end is not known, all of it.
    `confirmed` or `unconfirmed` is the offer that this event is the sign for.
    """

    guard: Guard
    verdict: Verdict
    only_since: float | None = None
    confirmed: OfferId | None = None
    unconfirmed: OfferId | None = None


def policy(provider: str) -> Policy:
    """The provider's own policy, or the one for hosts that show the flag."""
    return _POLICIES.get(provider, _OTHERS)


def hear(guard: Guard, said: HookInput, at: float) -> Hearing:
    """Take in one hook event of the session; `at` is wall seconds.

    To be called once for each event, before anything is offered at it; after an
    offer was printed at it, `printed` follows.
    """
    if said.is_subagent:
        return Hearing(guard, Verdict.SUBAGENT)
    if said.event is HookEvent.PROMPT:
        return _prompted(guard, said)
    if said.event is not HookEvent.TURN_ENDED:
        return Hearing(guard, Verdict.NOT_A_TURN_END)
    return _turn_ended(guard, said, at)


def tool_called(guard: Guard, provider: str) -> Guard:
    """The session's agent called a tool of ours."""
    if not policy(provider).tool_call_resets:
        return guard
    return replace(guard, continuations=0)


def printed(guard: Guard, offer_id: OfferId, nonce: str = "") -> Guard:
    """An offer was printed at the turn end that was heard last."""
    return replace(
        guard,
        printed=offer_id,
        printed_turn=guard.turn_id,
        nonce=nonce,
        prompted=False,
    )


def handed(guard: Guard, offer_id: OfferId, nonce: str) -> Guard:
    """An offer went a native way; a prompt event that shows its text confirms it."""
    return replace(guard, handed=offer_id, handed_nonce=nonce)


def seen(guard: Guard) -> Guard:
    """The native way itself showed that what was handed last arrived."""
    if guard.handed is None:
        return guard
    return replace(guard, handed=None, handed_nonce="", confirmed=guard.handed)


def _prompted(guard: Guard, said: HookInput) -> Hearing:
    """A prompt of the person, or our own text that the host submitted as one."""
    if guard.handed_nonce and guard.handed_nonce in said.prompt:
        after = replace(guard, handed=None, handed_nonce="", confirmed=guard.handed)
        return Hearing(after, Verdict.NOT_A_TURN_END, confirmed=guard.handed)
    if guard.nonce and guard.nonce in said.prompt:
        after = replace(guard, printed=None, nonce="", confirmed=guard.printed)
        return Hearing(after, Verdict.NOT_A_TURN_END, confirmed=guard.printed)
    return Hearing(replace(guard, prompted=True), Verdict.NOT_A_TURN_END)


def _turn_ended(guard: Guard, said: HookInput, at: float) -> Hearing:
    verdict = _judge(guard, said)
    printed_before = guard.printed if policy(said.provider).shows_sign else None
    confirms = _confirms(guard, said)
    after = replace(
        guard,
        continuations=_count(guard, said),
        turn_id=said.turn_id,
        ended_at=at,
        printed=None,
        printed_turn="",
        nonce="",
        prompted=False,
        confirmed=printed_before if confirms else guard.confirmed,
        verdict=verdict,
    )
    return Hearing(
        after,
        verdict,
        only_since=_since(guard, at) if verdict is Verdict.ONLY_NEW else None,
        confirmed=printed_before if confirms else None,
        unconfirmed=None if confirms else printed_before,
    )


def _count(guard: Guard, said: HookInput) -> int:
    if said.continuations is not None:
        return said.continuations
    return guard.continuations + 1 if said.is_continuation else 0


def _judge(guard: Guard, said: HookInput) -> Verdict:
    if not said.may_drain:
        return Verdict.INTERRUPTED
    rules = policy(said.provider)
    count = _count(guard, said)
    if rules.limit is not None and count >= rules.limit:
        return Verdict.LIMIT_REACHED
    return Verdict.ONLY_NEW if rules.only_new and count > 0 else Verdict.OFFER


def _since(guard: Guard, at: float) -> float:
    return at if guard.ended_at is None else guard.ended_at


def _confirms(guard: Guard, said: HookInput) -> bool:
    """Did the turn go on because of the printed offer?

    Where the host names its turns, the name decides; else a prompt in between
    makes the sign worthless.
    """
    if guard.printed_turn and said.turn_id:
        is_same_turn = guard.printed_turn == said.turn_id
    else:
        is_same_turn = not guard.prompted
    return said.is_continuation and is_same_turn
