"""`up`: have a running bridge and know what to do next."""

from __future__ import annotations

from bridge.cli.bridge import show_started, start_bridge
from bridge.cli.invocation import Invocation, verb
from bridge.cli.present import advise

_NEXT = """
Next, in the folder of a project, set it up and choose a chat:
  agentworks attach
or type in the chat itself, once the project is set up:
  /agentworks attach [NAME]    in Claude Code
  $agentworks attach [NAME]    in Codex
See who is attached:
  agentworks agents"""


@verb("up")
def up(invocation: Invocation) -> None:
    """Start the bridge and say what to do next.

    It hosts its own message server unless you chose another.
    """
    answer, is_new = start_bridge(invocation)
    show_started(invocation, answer, is_new)
    if not invocation.as_json:
        advise(_NEXT)
