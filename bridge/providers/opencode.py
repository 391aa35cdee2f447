"""opencode: what our plugin says and takes, which process it is, whose shell.

Owns every fact about opencode that the rest of the bridge needs to know. Promises
pure functions of their input: nothing here reads a file, a process or a clock.
Observed with 1.18.33, offline.

A plugin of ours runs inside of the program. One process serves many chats, its
agents' subtasks among them, so a process says nothing about the chat; opencode
itself does not tell a command's shell which chat it belongs to, our plugin does.
Its tool servers are shared by all chats and hear no word of which one calls.
"""

from __future__ import annotations

from collections.abc import Mapping

from bridge.core.caller import HookEvent, HookInput, ProcessFacts
from bridge.core.render import Budget, Print
from bridge.providers import extension, host_json, programs

NAME = "opencode"
TITLE = "opencode"
ROUTES: tuple[str, ...] = ("adapter", "hook")
OFFERS_AT = extension.OFFERS_AT
HAS_ONE_CHAT = False
HAS_MANY_CHATS = True
IS_IN_PROCESS = True
TRIED = "opencode 1.18.33, offline"
# A prompt is kept whole; this is the bridge's own limit for a native route.
BUDGET = Budget("utf16", 96 * 1024)
# It keeps the first 2,000 lines and 50 KiB of what a command prints.
RESULT_BUDGET = Budget("bytes", 48_000)

SESSION = "AGENTWORKS_SESSION_ID"
"""The variable in which our plugin tells a shell its chat."""

SHELL_MARKS = frozenset({SESSION})
# Its tool servers have these as well.
MARKS = SHELL_MARKS | {"OPENCODE", "OPENCODE_PID"}


def read_hook(event_word: str, stdin: bytes) -> HookInput:
    """What our plugin said; raises Invalid."""
    return extension.read(NAME, event_word, stdin)


def print_offer(event: HookEvent, text: str, version: str = "") -> Print:
    """An offer at a turn's end, which the plugin prompts with; raises ValueError."""
    return extension.offer(event, text)


def print_block(event: HookEvent, text: str) -> Print:
    """The answer to `/agentworks`, shown to the person; raises ValueError."""
    return extension.answer(event, text)


def print_person_line(event: HookEvent, text: str) -> Print | None:
    """A line at a session's start, for the person alone."""
    return extension.line(event, text)


def is_program(facts: ProcessFacts) -> bool:
    """Is this an opencode process: the native binary under its own name?

    Not the npm package's node script, which only starts the binary and waits. With
    an unreadable program both kernel name and argv[0] must be `opencode`.
    """
    command = programs.argument_name(facts, 0)
    if not facts.program:
        return facts.name == NAME and command == NAME
    return programs.program_name(facts) == NAME and command in ("", NAME)


def thread_of_call(meta: Mapping[str, object]) -> str | None:
    """None: opencode tells its tool servers nothing about the chat that calls."""
    return None


def session_of_environment(environment: Mapping[str, str]) -> str | None:
    """The chat whose shell this is, by our plugin's word; raises Refused."""
    return host_json.session_named(environment, SESSION, TITLE)
