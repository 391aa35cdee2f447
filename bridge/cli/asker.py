"""Whether it is the person who runs this command, judged without a daemon.

Promises that what changes this computer beyond the bridge's own folders is done
for the person alone, also while no bridge runs that could be asked.
"""

from __future__ import annotations

import os

from bridge.core import authority
from bridge.core.caller import Person, call_caller
from bridge.errors import EXIT_NOT_ALLOWED, Refused
from bridge.providers import discovery, process


def require_person(what: str) -> None:
    """Raises Refused (exit 3) for an agent, and where nobody can say who asks.

    `what` names the command for the refusal.
    """
    ancestry = process.ancestry_of(os.getpid())
    caller = call_caller(
        discovery.evidence_of(ancestry, process.marks_of, lambda _: False)
    )
    if isinstance(caller, Person):
        return
    # To stop the bridge is the person's alone, and this does no less.
    no = authority.may(caller, "stop") or authority.Refusal("person_only", "")
    raise Refused(
        no.code,
        f"{no.message} So {what} was not done.",
        no.hint,
        exit_code=EXIT_NOT_ALLOWED,
    )
