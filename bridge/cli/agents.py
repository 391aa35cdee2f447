"""Who is attached on this computer, and ending that: `agents` and `detach`."""

from __future__ import annotations

import sys
import time

import click
import msgspec

from bridge.cli.choosing import choose
from bridge.cli.invocation import Invocation, verb
from bridge.cli.present import advise, ago, document, say, state_styled, styled
from bridge.core import standing, texts
from bridge.core.nearest import nearest_names
from bridge.core.visible import one_line
from bridge.errors import Refused
from bridge.local.replies import AgentRow, AgentsReply, DetachReply, PrepareReply
from bridge.local.requests import Agents, Detach, Prepare

_WATCH_S = 2.0


@verb("agents")
@click.argument("name", default="")
@click.option("--watch", is_flag=True, help="Show it again whenever it changes.")
@click.option("--test-wake", is_flag=True, help="Send NAME a message, step by step.")
@click.option("--yes", is_flag=True, help="Agree to what a wake test may cost.")
def agents(
    invocation: Invocation, name: str, watch: bool, test_wake: bool, yes: bool
) -> None:
    """Show who is attached, or all about one NAME.

    With --test-wake one harmless message is sent to NAME, which may start a turn in
    its chat; how far it came and how long each step took is shown.
    """
    if test_wake:
        from bridge.cli import waking  # only a wake test pays for it

        waking.test(invocation, name, yes)
        return
    shown = b""
    while True:
        answer = _answer(invocation, name)
        if not watch or _without_ages(answer) != shown:
            shown = _without_ages(answer)
            _show(invocation, answer, name, watch)
        if not watch:
            return
        time.sleep(_WATCH_S)


def _answer(invocation: Invocation, name: str) -> bytes:
    """The rows, of one name or of all; raises Refused with the nearest names."""
    answer = invocation.ask(Agents(name=name))
    if name and not _rows(answer):
        names = [row.name for row in _rows(invocation.ask(Agents()))]
        text = texts.nobody_attached(name, nearest_names(name, names))
        raise Refused("not_attached", text)
    return answer


def _rows(answer: bytes) -> tuple[AgentRow, ...]:
    return msgspec.json.decode(answer, type=AgentsReply).agents


@verb("detach")
@click.argument("name", default="")
def detach(invocation: Invocation, name: str) -> None:
    """End an attachment.

    NAME's, this chat's own, or one that you choose.
    """
    chosen = name or _chosen_to_detach(invocation)
    answer = invocation.ask_for(DetachReply, Detach(name=chosen), answer_s=30)
    if invocation.as_json:
        document(msgspec.json.encode(answer))
    else:
        say(texts.detached(answer.name, answer.queued))


def _chosen_to_detach(invocation: Invocation) -> str:
    """Empty for a chat's own attachment, which the daemon knows better."""
    if invocation.ask_for(PrepareReply, Prepare()).caller == "own":
        return ""
    rows = invocation.ask_for(AgentsReply, Agents()).agents
    if not rows or not sys.stdin.isatty():
        return ""
    lines = [f"{row.name}  {row.provider}  {row.session}  {row.state}" for row in rows]
    (index,) = choose("Which one ends?", lines)
    return rows[index].name


def _without_ages(answer: bytes) -> bytes:
    """The answer without what changes by itself as time passes."""
    rows = _rows(answer)
    still = [
        msgspec.structs.replace(
            row, oldest_unacknowledged_s=None, last_contact_s=None, not_live=""
        )
        for row in rows
    ]
    return msgspec.json.encode(still)


def _show(invocation: Invocation, answer: bytes, name: str, watch: bool) -> None:
    if invocation.as_json:
        document(answer)
        return
    if watch:
        click.clear()
    rows = _rows(answer)
    if name:
        click.echo(details(rows[0]))
    else:
        click.echo(listing(rows))
        if not rows:
            advise("Attach one: agentworks attach, or in a chat: /agentworks attach")


def listing(rows: tuple[AgentRow, ...]) -> str:
    """The table of attachments, the same as in a chat but whole and coloured."""
    lines = standing.agents_table(rows, limit=len(rows)).split("\n")
    head = styled(lines[0], bold=bool(rows))
    body = [
        state_styled(line, row.state) for line, row in zip(lines[1:], rows, strict=True)
    ]
    return "\n".join([head, *body])


def details(row: AgentRow) -> str:
    """All that is known of one attachment, a line for each fact."""
    unacknowledged = str(row.unacknowledged)
    if row.oldest_unacknowledged_s is not None:
        unacknowledged += f", the oldest for {ago(row.oldest_unacknowledged_s)}"
    facts = {
        "name": row.name,
        "provider": row.provider,
        "session": row.session,
        "state": row.state,
        "mail comes": row.not_live or standing.route_words(row.route),
        "purpose": row.purpose or "-",
        "waiting": standing.waiting(row.pending, row.why) or "0",
        "unacknowledged": unacknowledged,
        "last contact": ago(row.last_contact_s),
    }
    facts |= {"address": row.route} if "://" in row.route else {}
    facts |= {"note": row.note} if row.note else {}
    width = max(map(len, facts))
    return "\n".join(
        f"{styled(fact.ljust(width), bold=True)}  {one_line(value)}"
        for fact, value in facts.items()
    )
