"""The books notice what is lost, repeated, or unsure without a cause."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.soak.examples import (
    HERE,
    HOOK,
    ROW,
    SENT,
    STORED,
    STORED_UNSURE,
    UNSURE,
    UNTOLD,
    WELL,
    but,
    faults,
)
from tests.soak.facts import NOWHERE, Kill, Outgoing
from tests.soak.ledger import balance


def test_one_message_that_was_printed_balances() -> None:
    ledger = balance(WELL)

    assert ledger.balances
    assert (ledger.sent, ledger.kept, ledger.accepted) == (1, 1, 1)
    assert ledger.classes["offered"] == sum(ledger.classes.values()) == 1


# ---- lost --------------------------------------------------------------------------


def test_a_message_that_the_journal_took_and_has_no_more_is_lost() -> None:
    ledger = balance(but(rows=(), hooks=(), stored=(UNTOLD,)))

    assert not ledger.balances
    assert [each.id for each in ledger.faults] == ["msg-1"]
    assert "lost" in ledger.faults[0].what


def test_a_message_that_never_reached_a_living_agent_is_stuck() -> None:
    away = {"ann": 500_000_000, "bob": 500_000_000}

    assert "stuck" in faults(but(rows=(), hooks=(), stored=(UNTOLD,), attached=away))[0]


@pytest.mark.parametrize("answer", ["accepted", "queued"])
def test_a_submission_that_was_called_kept_and_is_nowhere_is_lost(answer: str) -> None:
    sent = replace(SENT, answer=answer, message_id="")
    nowhere = but(attempts=(sent,), stored=(), rows=(), hooks=(), outgoing=())

    assert faults(nowhere) == ["kept, and then lost on the way to the server"]


def test_a_queued_submission_that_a_detach_listed_is_not_lost() -> None:
    sent = replace(SENT, answer="queued", message_id="")
    listed = but(
        attempts=(sent,),
        stored=(),
        rows=(),
        hooks=(),
        outgoing=(),
        dropped=frozenset({"ann-1"}),
    )

    assert balance(listed).balances
    assert balance(listed).dropped == 1


def test_a_queued_submission_that_was_refused_later_is_not_lost() -> None:
    sent = replace(SENT, answer="queued", message_id="")
    refused = Outgoing("ann-1", "ann", "refused", code="not_found")
    no = but(attempts=(sent,), stored=(), rows=(), hooks=(), outgoing=(refused,))

    assert balance(no).balances
    assert balance(no).refused == {"not_found": 1}


def test_a_refusal_that_a_hook_was_handed_outlives_its_row() -> None:
    sent = replace(SENT, answer="queued", message_id="")
    told = replace(HOOK, handed=(), once=("refused ann-1",))
    gone = but(attempts=(sent,), stored=(), rows=(), hooks=(told,), outgoing=())

    assert balance(gone).balances
    assert faults(replace(gone, hooks=(replace(told, kind="refused"),)))


@pytest.mark.parametrize(("is_away", "is_lost"), [(True, False), (False, True)])
def test_what_waits_for_an_agent_that_is_away_is_not_lost(
    is_away: bool, is_lost: bool
) -> None:
    sent = replace(SENT, answer="queued", message_id="")
    waiting = Outgoing("ann-1", "ann", "uncertain")
    there = {"bob": 500_000_001} if is_away else HERE
    kept = but(
        attempts=(sent,),
        stored=(),
        rows=(),
        hooks=(),
        outgoing=(waiting,),
        attached=there,
    )

    assert bool(faults(kept)) is is_lost


def test_an_attachment_that_ended_under_a_living_chat_is_a_fault() -> None:
    gone = {**HERE, "bob": NOWHERE}

    assert faults(but(attached=gone)) == ["its chat lives, and its attachment does not"]


# ---- repeated ----------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["plain", "slow", "killed", "dropped"])
def test_a_message_that_was_handed_twice_is_a_fault(kind: str) -> None:
    again = replace(HOOK, kind=kind, began=20.0, ended=20.1)

    assert faults(but(hooks=(HOOK, again))) == ["handed more than once"]


def test_a_message_that_could_not_be_printed_is_handed_again() -> None:
    unprinted = replace(HOOK, kind="refused", began=5.0, ended=5.1)

    assert balance(but(hooks=(unprinted, HOOK))).balances


def test_a_message_that_was_handed_and_is_pending_would_be_repeated() -> None:
    pending = replace(ROW, state="pending")

    assert "would be repeated" in " ".join(
        faults(but(rows=(pending,), stored=(UNTOLD,), attached={}))
    )


def test_one_submission_that_became_two_messages_is_a_fault() -> None:
    twin = replace(STORED, message_id="msg-2", sequence=500_000_002)

    assert "one submission, several messages" in faults(but(stored=(STORED, twin)))


def test_a_sender_that_was_told_another_id_is_a_fault() -> None:
    told = replace(SENT, message_id="msg-9")

    assert faults(but(attempts=(SENT, told))) == [
        "its sender was told another message id"
    ]


# ---- unsure ------------------------------------------------------------------------


def test_an_unsure_message_without_a_kill_is_a_fault() -> None:
    named = replace(HOOK, handed=(), unsure=("msg-1",), began=20.0, ended=20.1)

    assert faults(
        but(rows=(UNSURE,), stored=(STORED_UNSURE,), hooks=(HOOK, named))
    ) == ["1 unsure offers for 0 cut hooks"]


@pytest.mark.parametrize("at", [10.05, 11.0])
def test_a_kill_of_the_bridge_explains_one_unsure_offer(at: float) -> None:
    named = replace(HOOK, handed=(), unsure=("msg-1",), began=20.0, ended=20.1)
    killed = (Kill(at, "bridge"),)
    ledger = balance(
        but(rows=(UNSURE,), stored=(STORED_UNSURE,), hooks=(HOOK, named), kills=killed)
    )

    assert ledger.balances
    assert (ledger.unsure_offers, ledger.causes) == (1, 1)


@pytest.mark.parametrize("kind", ["killed", "dropped", "waited"])
def test_a_hook_that_was_killed_explains_one_unsure_offer(kind: str) -> None:
    cut = replace(HOOK, kind=kind)
    named = replace(HOOK, handed=(), unsure=("msg-1",), began=20.0, ended=20.1)

    assert balance(
        but(rows=(UNSURE,), stored=(STORED_UNSURE,), hooks=(cut, named))
    ).balances


def test_one_kill_does_not_explain_two_unsure_offers() -> None:
    other = replace(
        STORED_UNSURE, message_id="msg-2", submission_id="ann-2", sequence=2
    )
    rows = (UNSURE, replace(UNSURE, message_id="msg-2", offer_id="offer-2"))
    cut = replace(HOOK, kind="dropped")
    named = replace(HOOK, handed=(), unsure=("msg-1", "msg-2"), began=20.0)
    over = but(
        attempts=(SENT, replace(SENT, submission_id="ann-2", message_id="msg-2")),
        stored=(STORED_UNSURE, other),
        rows=rows,
        hooks=(cut, named),
    )

    assert faults(over) == ["2 unsure offers for 1 cut hooks"]


@pytest.mark.parametrize(
    ("which", "at"), [("server", 10.05), ("bridge", 9.0), ("bridge", 13.0)]
)
def test_a_kill_of_something_else_or_at_another_time_explains_nothing(
    which: str, at: float
) -> None:
    named = replace(HOOK, handed=(), unsure=("msg-1",), began=20.0, ended=20.1)
    killed = (Kill(at, which),)

    assert faults(
        but(rows=(UNSURE,), stored=(STORED_UNSURE,), hooks=(HOOK, named), kills=killed)
    )


def test_an_unsure_message_is_named_once() -> None:
    cut = replace(HOOK, kind="dropped")
    named = replace(HOOK, handed=(), unsure=("msg-1",), began=20.0)
    unsure = but(rows=(UNSURE,), stored=(STORED_UNSURE,))

    assert faults(replace(unsure, hooks=(cut,))) == [
        "unsure, and its agent was never told"
    ]
    assert faults(replace(unsure, hooks=(cut, named, named))) == [
        "named as unsure more than once"
    ]
