"""Whether a Claude Code was started to take what our MCP child pushes.

Owns the words of its command line for that. Promises a pure function of them: a
program that was not started so is never pushed anything, since it would drop it
without a word.
"""

from __future__ import annotations

from collections.abc import Sequence

FLAG = "--dangerously-load-development-channels"
PLUGIN = "plugin:agentworks@agentworks"
SERVER = "server:agentworks-live"
_FLAGS = frozenset({"--channels", FLAG})  # the first takes approved ones only


def takes_ours(arguments: Sequence[str]) -> bool:
    """Is the plugin, or the server of that name, among what was to be taken?"""
    is_taken = False
    for word in arguments:
        flag, _, value = word.partition("=")
        if word.startswith("-"):
            is_taken = flag in _FLAGS
            word = value
        if is_taken and word in (PLUGIN, SERVER):
            return True
    return False
