"""The wake test at the person's terminal: asked for, sent, shown step by step.

Promises that nothing is sent before the person agreed to a turn that may cost
tokens, and that the first step which does not come in time ends it with what that
means and what to do.
"""

from __future__ import annotations

import click
import msgspec

from bridge.cli.choosing import agree
from bridge.cli.invocation import Invocation
from bridge.cli.present import document
from bridge.core.visible import one_line
from bridge.errors import EXIT_USAGE, Refused
from bridge.local.replies import WakeReply, WakeStep
from bridge.local.requests import WakeProgress, WakeTest

_SEND_S = 15.0
_POLL_S = 10.0
STEPS = (
    "accepted by the server",
    "in the bridge's journal",
    "offered",
    "seen by its program",
    "acknowledged by its agent",
)
_MEANS = (
    "The server did not take it: agentworks bridge status",
    "The server has it, and it did not come here: agentworks bridge status",
    "It waits here, since nothing wakes this chat and no turn of it ended. It comes"
    " when the next one does: type something in the chat. See why: agentworks agents"
    " {name}",
    "It was handed over, and its program gave no sign that it took it. Look at the"
    " chat: a dialog or a longer turn may hold it up. Its id is named there once more.",
    "Its program took it, and its agent has not said so. Look at the chat: it may ask"
    " for a permission, or its turn is still running.",
)


def test(invocation: Invocation, name: str, is_agreed: bool) -> None:
    """Send one message and show how far it comes; raises Refused where it ends."""
    if not name:
        raise Refused(
            "no_name",
            "A wake test needs the name of one chat, so nothing was sent.",
            "Give it: agentworks agents NAME --test-wake",
            exit_code=EXIT_USAGE,
        )
    shown = one_line(name)
    click.echo(
        f"This sends {shown} one harmless message. It may start a turn in that chat,"
        " which costs tokens.",
        err=True,
    )
    if not is_agreed and not agree("Send it?", "--yes"):
        raise Refused("declined", "You said no, so nothing was sent.")
    reply = invocation.ask_for(WakeReply, WakeTest(name=name), _SEND_S)
    reply = _followed(invocation, reply)
    if invocation.as_json:
        document(msgspec.json.encode(_facts(reply)))
    if len(reply.steps) < len(STEPS):
        raise _stopped(reply)
    if not invocation.as_json:
        click.echo(f"{shown} can be reached.")


def _followed(invocation: Invocation, reply: WakeReply) -> WakeReply:
    """Each step as it comes, until the last or until one does not come."""
    known = 0
    while True:
        if not invocation.as_json:
            for place in range(known, len(reply.steps)):
                click.echo(_line(place, reply.steps[place]))
        known = len(reply.steps)
        if reply.is_over:
            return reply
        reply = invocation.ask_for(WakeReply, WakeProgress(known=known), _POLL_S)


def _line(place: int, step: WakeStep) -> str:
    width = max(map(len, STEPS))
    note = f"  {one_line(step.note)}" if step.note else ""
    return f"  {STEPS[place].ljust(width)}  {step.passed_s:7.2f} s{note}"


def _facts(reply: WakeReply) -> object:
    steps = zip(STEPS, reply.steps, strict=False)
    return {
        "name": reply.name,
        "steps": [
            {"step": what, "passed_s": step.passed_s, "note": step.note}
            for what, step in steps
        ],
        "is_reached": len(reply.steps) == len(STEPS),
    }


def _stopped(reply: WakeReply) -> Refused:
    place = len(reply.steps)
    name = one_line(reply.name)
    return Refused(
        "not_reached",
        f"Not {STEPS[place]} within a minute. {_MEANS[place].format(name=name)}",
    )
