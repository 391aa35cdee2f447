"""What `messages` and `bridge message` share: sending once, and showing mail.

Promises that a send whose answer was lost can be repeated without a second
message, since its submission id is told; and that each line of a message's text
is marked as such, so that no text can look like a line of ours.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import click

from bridge.cli.invocation import Invocation
from bridge.cli.present import advise, ago, document, say, styled, table
from bridge.clock import SystemClock
from bridge.core.ids import new_id
from bridge.core.visible import one_line, visible
from bridge.errors import Unknown
from bridge.local.requests import Request

SEND_S = 15.0  # the daemon itself answers "queued" after 5 s of silence
Facts = Mapping[str, Any]


def new_submission_id() -> str:
    """An id for one message, made before it is first sent."""
    clock = SystemClock()
    return new_id("sub", clock.wall(), clock.random_bytes(10))


def send_once(invocation: Invocation, request: Request, submission_id: str) -> None:
    """Send and show what became of it; raises with the id when that is not known."""
    try:
        answer = invocation.ask(request, SEND_S)
    except Unknown as error:
        raise Unknown(
            error.code,
            error.message,
            f"Ask again with --submission-id {submission_id}: the same id is never"
            " sent twice.",
        ) from error
    if invocation.as_json:
        document(answer)
    else:
        say(sent(json.loads(answer)))


def sent(facts: Facts) -> str:
    """What became of a message, in one or two sentences."""
    if facts.get("status") == "queued":
        note = one_line(str(facts.get("note", "")))
        return f"Queued as {one_line(str(facts.get('submission_id')))}. {note}".strip()
    message_id = one_line(str(facts.get("message_id")))
    inbox_id = one_line(str(facts.get("inbox_id")))
    text = f"Accepted as {message_id} in {inbox_id}: stored, which is not yet read."
    recipient = facts.get("recipient")
    if not isinstance(recipient, Mapping) or not recipient.get("state"):
        return text
    name = one_line(str(recipient.get("name", "")))
    if recipient["state"] == "mailbox":
        return f"{text} No chat is attached as {name}: it waits in that mailbox."
    since = recipient.get("since")
    when = f" since {one_line(str(since))}" if since else ""
    return f"{text} {name} is {one_line(str(recipient['state']))}{when}."


def show_page(invocation: Invocation, answer: bytes) -> None:
    """The messages of one read, and how to go on."""
    if invocation.as_json:
        document(answer)
        return
    page = json.loads(answer)
    messages = _objects(page.get("messages"))
    for message in messages:
        click.echo(letter(message))
    for sentence in absences(page.get("sides")):
        say(sentence)
    after = page.get("next_cursor", 0)
    none = "" if messages else "No new messages. "
    say(f"{none}Go on with: --after {one_line(str(after))}")


def _objects(found: object) -> list[Facts]:
    """The objects in a list that another program sent, whatever it really sent."""
    rows = found if isinstance(found, list) else []
    return [each for each in rows if isinstance(each, Mapping)]


def letter(message: Facts) -> str:
    """One message: who, when and which on a line, then its text, marked."""
    fields = ("sequence", "sender", "sent_at", "message_id", "inbox_id")
    words = [str(message.get(field, "-")) for field in fields]
    head = "  ".join(map(one_line, [*words, receipt(message)]))
    lines = visible(str(message.get("message", ""))).split("\n")
    return "\n".join([styled(head, bold=True), *(f"  | {line}" for line in lines)])


def receipt(message: Facts) -> str:
    """How far a message came: `stored, offered`, `processed`, or why it was not."""
    signs = [str(message.get("delivery", "-"))]
    if signs == ["stored"] and message.get("observed"):
        signs.append(str(message["observed"]))
    if message.get("delivery_error"):
        signs.append(str(message["delivery_error"]))
    return ", ".join(signs)


def absences(sides: object) -> list[str]:
    """A sentence for each end of a conversation that is not there."""
    return [
        f"{one_line(str(side.get('name')))} is offline since"
        f" {one_line(str(side['offline_since']))}."
        for side in _objects(sides)
        if side.get("offline_since")
    ]


def show_state(invocation: Invocation, answer: bytes) -> None:
    """How far the last messages of one inbox came, without their texts."""
    if invocation.as_json:
        document(answer)
        return
    state = json.loads(answer)
    head = ("SEQUENCE", "FROM", "TO", "SENT", "MESSAGE", "RECEIPT", "AT")
    fields = ("sequence", "sender", "recipient", "sent_at", "message_id")
    rows = [
        (
            *(str(each.get(field, "-")) for field in fields),
            receipt(each),
            str(each.get("delivery_at") or "-"),
        )
        for each in _objects(state.get("messages"))
    ]
    click.echo(table(head, rows))
    for sentence in absences(state.get("sides")):
        say(sentence)


def show_agents(
    invocation: Invocation,
    answer: bytes,
    none: str = "No other names are registered.",
) -> None:
    """The names of the account, with who they are and whether they are there.

    `none` is the sentence for an account without any.
    """
    if invocation.as_json:
        document(answer)
        return
    found = _objects(json.loads(answer).get("agents"))
    if not found:
        advise(none)
        return
    click.echo(directory(found))


def directory(found: Sequence[Facts]) -> str:
    """The table of an account's names."""
    rows = [
        (
            str(each.get("name", "")),
            str(each.get("provider", "") or "-"),
            "connected" if each.get("connected") else "offline",
            str(each.get("since") or "-"),
            str(each.get("purpose", "")),
        )
        for each in found
    ]
    return table(("NAME", "PROVIDER", "STATE", "SINCE", "PURPOSE"), rows)


def show_facts(invocation: Invocation, answer: bytes) -> None:
    """What is known of something, a line for each fact that has a value."""
    if invocation.as_json:
        document(answer)
        return
    facts = {key: value for key, value in json.loads(answer).items() if value != ""}
    width = max(map(len, facts), default=0)
    for key, value in facts.items():
        name = styled(one_line(key).ljust(width), bold=True)
        click.echo(f"{name}  {one_line(_worded(key, value))}")


def _worded(key: str, value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "-"
    if isinstance(value, Mapping):
        said = {name: each for name, each in value.items() if each not in (None, "")}
        return ", ".join(f"{name} {each}" for name, each in said.items()) or "-"
    if key.endswith("_s") and isinstance(value, int | float):
        return ago(value)
    return "-" if value is None else str(value)
