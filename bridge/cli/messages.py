"""`messages`: the account's addresses and mailboxes, with the person's own login."""

from __future__ import annotations

import click

from bridge.cli.invocation import Invocation, global_options, verb
from bridge.cli.mail import (
    new_submission_id,
    send_once,
    show_agents,
    show_facts,
    show_page,
    show_state,
)
from bridge.local.client import ANSWER_S
from bridge.local.requests import (
    MessagesList,
    MessagesRead,
    MessagesRegister,
    MessagesSend,
    MessagesState,
    MessagesUnregister,
)

messages = click.Group(
    "messages",
    params=global_options(),
    help="Your own mailboxes: names, send and read.",
)


after_option = click.option(
    "--after",
    default=0,
    type=click.IntRange(0, 10**9),
    metavar="N",
    help="Only what comes after this number; a read says how to go on.",
)
wait_option = click.option(
    "--wait",
    default=0.0,
    type=click.FloatRange(0, 25),
    metavar="S",
    help="Wait so many seconds for the first one.",
)


@verb("register")
@click.option("--agent", required=True, metavar="N", help="The name to register.")
@click.option(
    "--allow-connection",
    "connections",
    multiple=True,
    metavar="ID",
    help="Another connection that may use it; may be repeated.",
)
def register(invocation: Invocation, agent: str, connections: tuple[str, ...]) -> None:
    """Register a name; again without connections keeps its list."""
    request = MessagesRegister(agent=agent, allow_connections=connections or None)
    show_facts(invocation, invocation.ask(request))


@verb("list")
def list_agents(invocation: Invocation) -> None:
    """List the names of your account."""
    none = "No names are registered. Register one: agentworks messages register --agent"
    show_agents(invocation, invocation.ask(MessagesList()), f"{none} NAME")


@verb("unregister")
@click.option("--agent", required=True, metavar="N", help="The name to remove.")
def unregister(invocation: Invocation, agent: str) -> None:
    """Remove a name for good; its inboxes lead to nobody then."""
    show_facts(invocation, invocation.ask(MessagesUnregister(agent=agent)))


@verb("send")
@click.option("--agent", default="", metavar="N", help="The name it comes from.")
@click.option("--target", default="", metavar="T", help="Such as agent:bob.")
@click.option("--inbox", default="", metavar="ID", help="A conversation to go on with.")
@click.option("--message", required=True, metavar="TEXT", help="What it says.")
@click.option("--submission-id", default="", metavar="ID", help="To repeat a send.")
def send(
    invocation: Invocation,
    agent: str,
    target: str,
    inbox: str,
    message: str,
    submission_id: str,
) -> None:
    """Send a message to a name or into a conversation."""
    require_one({"--target": target, "--inbox": inbox})
    submission_id = submission_id or new_submission_id()
    request = MessagesSend(
        message=message,
        agent=agent,
        target=target,
        inbox_id=inbox,
        submission_id=submission_id,
    )
    send_once(invocation, request, submission_id)


@verb("read")
@click.option("--agent", default="", metavar="N", help="A mailbox: all conversations.")
@click.option("--inbox", default="", metavar="ID", help="One conversation.")
@after_option
@click.option(
    "--limit",
    default=100,
    type=click.IntRange(1, 100),
    metavar="N",
    help="At most so many messages.",
)
@wait_option
def read(
    invocation: Invocation, agent: str, inbox: str, after: int, limit: int, wait: float
) -> None:
    """Read messages; nothing is marked or removed by it."""
    require_one({"--agent": agent, "--inbox": inbox})
    request = MessagesRead(
        agent=agent, inbox_id=inbox, after=after, limit=limit, wait_s=wait
    )
    show_page(invocation, invocation.ask(request, ANSWER_S + wait))


@verb("state")
@click.option("--inbox", required=True, metavar="ID", help="The conversation.")
def state(invocation: Invocation, inbox: str) -> None:
    """Show how far the last messages of a conversation came."""
    show_state(invocation, invocation.ask(MessagesState(inbox_id=inbox)))


def require_one(options: dict[str, str]) -> None:
    """Exactly one of these options must be given; raises a usage error."""
    if sum(map(bool, options.values())) != 1:
        raise click.UsageError(f"Give exactly one of {' and '.join(options)}.")


for command in (register, list_agents, unregister, send, read, state):
    messages.add_command(command)
