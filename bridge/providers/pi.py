"""Pi: what our extension says and takes, which process it is, whose shell.

Owns every fact about Pi that the rest of the bridge needs to know. Promises pure
functions of their input: nothing here reads a file, a process or a clock.
Observed with 1.6.0, offline.

Pi has no hooks that are programs: an extension of ours runs inside of it. One
process has one chat at a time, and `/new`, `/resume` and `/fork` change it. Pi is
a script that node runs; it puts the one word `pi` in the place of its command
line, so no argument says which script that was.
"""

from __future__ import annotations

from collections.abc import Mapping

from bridge.core.caller import HookEvent, HookInput, ProcessFacts
from bridge.core.render import Budget, Print
from bridge.providers import extension, host_json, programs

NAME = "pi"
TITLE = "Pi"
ROUTES: tuple[str, ...] = ("adapter", "hook")
OFFERS_AT = extension.OFFERS_AT
HAS_ONE_CHAT = True
HAS_MANY_CHATS = False
IS_IN_PROCESS = True
TRIED = "Pi 1.6.0, offline"
# What an extension hands over is kept and shown whole; this is the bridge's own
# limit for a native route.
BUDGET = Budget("utf16", 96 * 1024)
# Pi keeps the first 2,000 lines and 50 KiB of what a tool answers.
RESULT_BUDGET = Budget("bytes", 48_000)

SHELL_MARKS = frozenset({"PI_SESSION_ID", "PI_SESSION_FILE"})
# Its MCP children have it as well.
MARKS = SHELL_MARKS | {"PI_CODING_AGENT"}


def read_hook(event_word: str, stdin: bytes) -> HookInput:
    """What our extension said; raises Invalid."""
    return extension.read(NAME, event_word, stdin)


def print_offer(event: HookEvent, text: str, version: str = "") -> Print:
    """An offer at a turn's end, which the extension appends; raises ValueError."""
    return extension.offer(event, text)


def print_block(event: HookEvent, text: str) -> Print:
    """The answer to `/agentworks`, shown to the person; raises ValueError."""
    return extension.answer(event, text)


def print_person_line(event: HookEvent, text: str) -> Print | None:
    """A line at a session's start, for the person alone."""
    return extension.line(event, text)


def is_program(facts: ProcessFacts) -> bool:
    """Is this a Pi process: node or bun under the one word `pi`, or Pi's own binary?

    Not the command line as it was typed: a node that runs Pi's script is Pi only
    once the script runs and says so. With an unreadable program the kernel's name
    must say it too.
    """
    if programs.argument_name(facts, 0) != NAME or facts.arguments[0] != NAME:
        return False
    if not facts.program:
        return facts.name == NAME
    return programs.is_script_runner(facts) or programs.program_name(facts) == NAME


def thread_of_call(meta: Mapping[str, object]) -> str | None:
    """None: the process says it, since it has one chat open at a time."""
    return None


def session_of_environment(environment: Mapping[str, str]) -> str | None:
    """The chat whose shell this is, or None; raises Refused for what is no id."""
    return host_json.session_named(environment, "PI_SESSION_ID", TITLE)
