"""`bridge message`: the messaging verbs of the chat that this shell belongs to."""

from __future__ import annotations

from typing import Literal

import click

from bridge.cli.invocation import Invocation, global_options, verb
from bridge.cli.mail import (
    new_submission_id,
    send_once,
    show_agents,
    show_facts,
    show_page,
)
from bridge.cli.messages import after_option, require_one, wait_option
from bridge.local.client import ANSWER_S
from bridge.local.requests import (
    SessionAck,
    SessionMessageStatus,
    SessionPeers,
    SessionPurpose,
    SessionRead,
    SessionReply,
    SessionSend,
)

message = click.Group(
    "message",
    params=global_options(),
    help="Messages of the attached chat that this shell runs in.",
)
_provider = click.option(
    "--provider",
    required=True,
    metavar="P",
    help="The chat's program: claude, codex or script.",
)
_text = click.option(
    "--message", "text", required=True, metavar="TEXT", help="What it says."
)


@verb("ack")
@_provider
@click.option("--message-id", required=True, metavar="ID", help="Which message.")
@click.option(
    "--delivery",
    required=True,
    type=click.Choice(("admitted", "processed")),
    help="How far it came.",
)
def ack(
    invocation: Invocation,
    provider: str,
    message_id: str,
    delivery: Literal["admitted", "processed"],
) -> None:
    """Say how far a message came.

    It arrived (admitted), or it was dealt with (processed).
    """
    request = SessionAck(provider=provider, message_id=message_id, delivery=delivery)
    show_facts(invocation, invocation.ask(request))


@verb("reply")
@_provider
@click.option("--message-id", default="", metavar="ID", help="The message answered.")
@click.option("--inbox", default="", metavar="ID", help="Or its conversation.")
@_text
@click.option(
    "--submission-id",
    required=True,
    metavar="ID",
    help="A new one of your own; the same one again repeats the send.",
)
def reply(
    invocation: Invocation,
    provider: str,
    message_id: str,
    inbox: str,
    text: str,
    submission_id: str,
) -> None:
    """Answer in the same inbox."""
    require_one({"--message-id": message_id, "--inbox": inbox})
    request = SessionReply(
        provider=provider,
        message=text,
        submission_id=submission_id,
        message_id=message_id,
        inbox_id=inbox,
    )
    send_once(invocation, request, submission_id)


@verb("send")
@_provider
@click.option("--target", required=True, metavar="T", help="Such as agent:bob.")
@_text
@click.option("--submission-id", default="", metavar="ID", help="To repeat a send.")
def send(
    invocation: Invocation, provider: str, target: str, text: str, submission_id: str
) -> None:
    """Write to another agent of your account."""
    submission_id = submission_id or new_submission_id()
    request = SessionSend(
        provider=provider, target=target, message=text, submission_id=submission_id
    )
    send_once(invocation, request, submission_id)


@verb("read")
@_provider
@click.option("--inbox", default="", metavar="ID", help="One conversation only.")
@after_option
@wait_option
def read(
    invocation: Invocation, provider: str, inbox: str, after: int, wait: float
) -> None:
    """Read this chat's messages; nothing is acknowledged by it."""
    request = SessionRead(provider=provider, inbox_id=inbox, after=after, wait_s=wait)
    show_page(invocation, invocation.ask(request, ANSWER_S + wait))


@verb("peers")
@_provider
def peers(invocation: Invocation, provider: str) -> None:
    """List the other agents of your account."""
    show_agents(invocation, invocation.ask(SessionPeers(provider=provider)))


@verb("status")
@_provider
@click.argument("id")
def status(invocation: Invocation, provider: str, id: str) -> None:  # noqa: A002
    """Tell what is known of a sent message.

    ID is its message id or its submission id.
    """
    request = SessionMessageStatus(provider=provider, id=id)
    show_facts(invocation, invocation.ask(request))


@verb("purpose")
@_provider
@click.option(
    "--purpose", "text", required=True, metavar="TEXT", help="One line for others."
)
def purpose(invocation: Invocation, provider: str, text: str) -> None:
    """Set the line that others see beside this chat's name."""
    request = SessionPurpose(provider=provider, purpose=text)
    show_facts(invocation, invocation.ask(request))


for command in (ack, reply, send, read, peers, status, purpose):
    message.add_command(command)
