"""The books notice each thing that may not be, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from tests.soak.facts import (
    NOWHERE,
    Ack,
    Attempt,
    Evidence,
    Handed,
    Hook,
    Kill,
    Outgoing,
    Row,
    Stored,
)
from tests.soak.ledger import balance

SENT = Attempt("ann", "ann-1", "accepted", message_id="msg-1")
ACCEPTED = Outgoing("ann-1", "ann", "accepted", "msg-1")
STORED = Stored(
    "msg-1", "ann-1", "ann", "bob", "conv-1", 500_000_001, observed="offered"
)
ROW = Row("msg-1", "bob", "offered", offer_id="offer-1")
HOOK = Hook("bob", "plain", began=10.0, ended=10.1, handed=(Handed("msg-1"),))
UNSURE = replace(ROW, state="ambiguous")
UNTOLD = replace(STORED, observed="")
STORED_UNSURE = replace(STORED, observed="unsure")
HERE = {"ann": 500_000_000, "bob": 500_000_001}

# One message from ann to bob, printed by bob's hook.
WELL = Evidence(
    attempts=(SENT,),
    hooks=(HOOK,),
    stored=(STORED,),
    rows=(ROW,),
    outgoing=(ACCEPTED,),
    attached=HERE,
)


def faults(evidence: Evidence) -> list[str]:
    """What is said of them, in order."""
    return [each.what for each in balance(evidence).faults]


def but(**changes: Any) -> Evidence:
    """As it should be, with one difference."""
    return replace(WELL, **changes)


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


# ---- said and not so ---------------------------------------------------------------


def test_offered_without_a_print_is_a_fault() -> None:
    assert faults(but(hooks=())) == ["called offered, and no hook was handed it"]


@pytest.mark.parametrize("state", ["admitted", "processed"])
def test_a_receipt_that_no_agent_gave_is_a_fault(state: str) -> None:
    acked = but(rows=(replace(ROW, state=state),))
    given = (Ack("bob", "msg-1", state),)
    of_another = (Ack("ann", "msg-1", state),)

    assert faults(acked) == [f"called {state}, and its agent never said so"]
    assert faults(replace(acked, acks=of_another)) == faults(acked)
    assert balance(replace(acked, acks=given)).balances


@pytest.mark.parametrize(
    ("told", "known", "is_well"),
    [
        ("processed", "processed", True),
        ("processed", "admitted", False),
        ("admitted", "processed", True),
        ("admitted", "stored", False),
    ],
)
def test_a_receipt_that_was_told_is_at_the_server(
    told: str, known: str, is_well: bool
) -> None:
    acks = (
        Ack("bob", "msg-1", "admitted", "admitted"),
        Ack("bob", "msg-1", "processed", ""),
        Ack("bob", "msg-1", told, told),
    )
    row = replace(ROW, state=told)
    stored = (replace(STORED, delivery=known),)

    evidence = but(acks=acks, rows=(row,), stored=stored)

    assert balance(evidence).balances is is_well
    assert balance(replace(evidence, attached={})).balances


def test_a_message_that_nobody_sent_is_a_fault() -> None:
    assert faults(but(attempts=())) == ["stored, and nobody has sent it"]


@pytest.mark.parametrize(
    ("hook", "what"),
    [
        (replace(HOOK, agent="eve"), "handed to another agent"),
        (replace(HOOK, kind="forged"), "handed to a forged hook"),
        (
            replace(HOOK, handed=(Handed("msg-1", is_whole=False),)),
            "handed with another body",
        ),
    ],
)
def test_a_message_in_the_wrong_hands_is_a_fault(hook: Hook, what: str) -> None:
    assert what in faults(but(hooks=(hook,)))


def test_within_a_conversation_nothing_is_shown_after_a_later_one() -> None:
    later = Stored(
        "msg-2", "ann-2", "ann", "bob", "conv-1", 500_000_002, observed="offered"
    )
    both = but(
        attempts=(SENT, Attempt("ann", "ann-2", "accepted", message_id="msg-2")),
        stored=(STORED, later),
        rows=(ROW, replace(ROW, message_id="msg-2")),
    )
    second = replace(HOOK, handed=(Handed("msg-2"),), began=9.0)

    assert faults(replace(both, hooks=(HOOK, second))) == ["handed after a later one"]


def test_setup_and_refusals_are_said_once() -> None:
    said = replace(HOOK, once=("setup of att-1",))
    again = replace(said, handed=(), began=20.0)
    unprinted = replace(again, kind="refused")

    assert balance(but(hooks=(said, unprinted))).balances
    assert faults(but(hooks=(said, again))) == ["said more than once"]


# ---- pending and withheld ----------------------------------------------------------


def test_pending_is_right_for_an_agent_that_is_away_only() -> None:
    pending = but(rows=(replace(ROW, state="pending"),), hooks=(), stored=(UNTOLD,))
    away = replace(pending, attached={"ann": 500_000_000})

    assert faults(pending) == ["still pending, though its agent asked to the end"]
    assert balance(away).classes["pending"] == 1
    assert balance(away).balances


def test_an_offer_that_never_ended_is_in_no_class() -> None:
    assert (
        "open"
        in faults(but(rows=(replace(ROW, state="offering"),), stored=(UNTOLD,)))[0]
    )


def test_a_retracted_message_is_withheld_with_its_reason() -> None:
    row = replace(ROW, state="withheld", reason="name_unregistered")
    ledger = balance(but(rows=(row,), hooks=(), stored=(UNTOLD,)))

    assert ledger.balances
    assert ledger.reasons == {"name_unregistered": 1}


def test_the_end_of_one_lease_withholds_nothing_for_the_next() -> None:
    row = replace(ROW, state="withheld", reason="replaced")

    assert "lost" in faults(but(rows=(row,), hooks=(), stored=(UNTOLD,)))[0]


def test_what_a_gone_name_was_sent_is_withheld() -> None:
    gone = but(
        rows=(),
        hooks=(),
        stored=(UNTOLD,),
        attached={"ann": 0},
        unregistered={"bob": 1.0},
    )

    assert balance(gone).reasons == {"recipient_unregistered": 1}
    assert balance(gone).balances


@pytest.mark.parametrize(("gone_at", "is_late"), [(9.0, False), (-40.0, True)])
def test_nothing_is_shown_long_after_its_sender_was_gone(
    gone_at: float, is_late: bool
) -> None:
    gone = but(unregistered={"ann": gone_at})

    assert faults(gone) == ["shown long after its sender was gone"] * is_late


@pytest.mark.parametrize("observed", ["", "unsure"])
def test_the_server_is_told_of_what_was_offered(observed: str) -> None:
    untold = but(stored=(replace(STORED, observed=observed),))

    assert faults(untold) == ["offered, and not so at the server"]
    assert balance(replace(untold, attached={})).balances


def test_after_a_detach_the_server_says_where_a_message_stands() -> None:
    observed = but(rows=(), stored=(replace(STORED, observed="offered"),))

    assert balance(observed).classes["offered"] == 1
    assert balance(observed).balances
