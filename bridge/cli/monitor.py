"""`monitor`: one line for each message that waits for the chat of this shell.

Meant for a program that shows its agent each line of a command, such as Muse's own
monitor tool. Promises nothing of a message's text, one line for each message, and
silence otherwise; it ends when the chat is attached no more.
"""

from __future__ import annotations

import click

from bridge.cli.invocation import Invocation, verb
from bridge.core.visible import label
from bridge.errors import Refused
from bridge.local.client import ANSWER_S
from bridge.local.replies import WatchReply
from bridge.local.requests import SessionWatch

# The daemon answers within 25 s by itself.
_WATCH_S = 25.0 + ANSWER_S
_NOT_ATTACHED = "not_attached"


@verb("monitor")
@click.option(
    "--session", required=True, metavar="ID", help="The session of this very chat."
)
def monitor(invocation: Invocation, session: str) -> None:
    """Print a line for each message that waits for this chat.

    For the monitor tool of a coding agent, which wakes it at each line. It ends
    when the chat is detached or offline.
    """
    after = 0
    while True:
        try:
            request = SessionWatch(session_id=session, after=after)
            answer = invocation.ask_for(WatchReply, request, _WATCH_S)
        except Refused as error:
            if error.code == _NOT_ATTACHED:
                return
            raise
        for each in answer.waiting:
            click.echo(_line(each.sender, answer.provider))
            after = max(after, each.sequence)
        if not answer.is_live:
            return


def _line(sender: str, provider: str) -> str:
    return (
        f"New AgentWorks message from {label(sender)}: read it with agent_message_read"
        f" (or: agentworks bridge message read --provider {label(provider)})"
    )
