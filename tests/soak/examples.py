"""One message from ann to bob, printed by bob's hook, and ways to change it."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from tests.soak.facts import Attempt, Evidence, Handed, Hook, Outgoing, Row, Stored
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
