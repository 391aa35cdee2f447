"""The books notice what is said and not so, and where each message ends."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.soak.examples import HOOK, ROW, SENT, STORED, UNTOLD, but, faults
from tests.soak.facts import Ack, Attempt, Handed, Hook, Stored
from tests.soak.ledger import balance

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
