"""Scripts: any long-lived process of the person, attached by its exact pid.

Owns what a script's turn end means: it runs `ask hook script stop` below itself
and reads bare text from its output. Promises that no process is ever taken for a
script by its name; only an attachment's process key makes it one, and that key's
text is the session id.
"""

from __future__ import annotations

from collections.abc import Mapping

from bridge.core.caller import HookEvent, HookInput, ProcessFacts
from bridge.core.records import ProcessKey
from bridge.core.render import Budget, Print
from bridge.errors import Invalid

NAME = "script"
TITLE = "Script"
ROUTES: tuple[str, ...] = ("hook",)
OFFERS_AT: frozenset[HookEvent] = frozenset({HookEvent.TURN_ENDED})
HAS_ONE_CHAT = False
HAS_MANY_CHATS = False
IS_IN_PROCESS = False
TRIED = "any process"
# Nothing between us and the reader cuts; what a native route would carry.
BUDGET = Budget("bytes", 96 * 1024)
RESULT_BUDGET = BUDGET

SHELL_MARKS: frozenset[str] = frozenset()
MARKS: frozenset[str] = frozenset()
STOP_WORD = "stop"


def session_id(key: ProcessKey) -> str:
    """The session of the script that runs as this process."""
    return key.text()


def read_hook(event_word: str, stdin: bytes) -> HookInput:
    """One `stop`; whatever is on stdin, nothing included, means nothing.

    The session id is empty: whoever knows the caller's ancestry fills it in.
    Raises Invalid for any other word.
    """
    if event_word != STOP_WORD:
        raise Invalid(
            "hook_unreadable",
            "A script asked with a word that is not known, so it was not answered.",
            f"Ask with: ask hook {NAME} {STOP_WORD}",
        )
    return HookInput(provider=NAME, event=HookEvent.TURN_ENDED, session_id="")


def print_offer(event: HookEvent, text: str, version: str = "") -> Print:
    """The text itself, ended by a newline. Raises ValueError at other events."""
    if event is not HookEvent.TURN_ENDED:
        raise ValueError(f"no offer is printed at {event}")
    return Print(text=f"{text}\n".encode())


def print_block(event: HookEvent, text: str) -> Print:
    """Raises ValueError: there is no chat to type a command in."""
    raise ValueError(f"no command is answered at {event}")


def print_person_line(event: HookEvent, text: str) -> Print | None:
    """None: a script reads all that is printed."""
    return None


def is_program(facts: ProcessFacts) -> bool:
    """False: a script is known by its process key alone."""
    return False


def thread_of_call(meta: Mapping[str, object]) -> str | None:
    """None: a script has one session, its process."""
    return None


def session_of_environment(environment: Mapping[str, str]) -> str | None:
    """None: a script sets no variable."""
    return None
