"""What each kind of caller may do: one list of verbs for each.

Owns those lists and the refusals. Promises that a verb that is in no list is
refused to everybody, and that an agent chooses nothing but a name: no session,
no process, no endpoint, and nobody else's attachment.
"""

from __future__ import annotations

from msgspec import Struct

from bridge.core.caller import (
    Caller,
    ChildCaller,
    HookCaller,
    Nobody,
    OwnSession,
    Person,
)
from bridge.core.ids import fold_name

_TERMINAL = "Ask the person to run it in a terminal of their own."


class Refusal(Struct, frozen=True):
    """No: a stable code, what it means, and what to do instead."""

    code: str
    message: str
    hint: str = ""


GREETING = frozenset({"hello"})
"""For everyone of our uid: it grants nothing, and starting the bridge needs it."""

SESSION = frozenset(
    {
        "session_send",
        "session_reply",
        "session_read",
        "session_ack",
        "session_peers",
        "session_purpose",
        "session_message_status",
    }
)
"""Messages of one's own attachment."""

WATCH = frozenset({"session_watch"})
"""That mail waits for one's own session, for its monitor: no tool."""

OWN = frozenset({"attach", "detach", "prepare", "agents", "status"})
"""One's own session, on the person's request, and what changes nothing.

For an agent `prepare` shows its own session and no other.
"""

PRIVILEGED = frozenset(
    {
        "stop",
        "test_wake",
        "messages_register",
        "messages_list",
        "messages_send",
        "messages_read",
        "messages_state",
        "messages_unregister",
    }
)
"""With the person's login, or for everyone: the person alone."""

VERBS: dict[type[Caller], frozenset[str]] = {
    # What a person typed in the chat comes in a hook too: command.typed_command.
    HookCaller: GREETING | {"hook"},
    ChildCaller: GREETING | SESSION,
    OwnSession: GREETING | SESSION | OWN | WATCH,
    Person: GREETING | OWN | PRIVILEGED | {"wake_progress"},
    Nobody: GREETING,
}
ALL = frozenset().union(*VERBS.values())


def may(caller: Caller, verb: str) -> Refusal | None:
    """None when this caller may use this verb, else why not."""
    if verb in VERBS[type(caller)]:
        return None
    if isinstance(caller, Nobody):
        return Refusal(caller.code, caller.reason, caller.hint)
    if verb not in ALL:
        return Refusal(
            "unknown_verb",
            f"This bridge knows no {verb!r}.",
            "Use a command of the same version as the bridge.",
        )
    if isinstance(caller, Person):
        return Refusal(
            "no_session",
            "This command speaks for the chat it is run in, and there is no coding "
            "agent above this terminal.",
            "Use agentworks messages, or run it in an attached chat.",
        )
    return Refusal(
        "person_only",
        f"An agent may not use {verb!r}: it may only attach, detach and use its own "
        "session.",
        _TERMINAL,
    )


def may_attach(
    caller: Caller,
    provider: str = "",
    session_id: str = "",
    native_pid: int = 0,
    confirm: bool = False,
    native_remote: str = "",
    has_wishes: bool = False,
    is_account_wide: bool = False,
) -> Refusal | None:
    """None when this caller may attach so; an agent may choose only the name.

    `has_wishes`: how mail comes is chosen too; `is_account_wide`: the person's whole
    account is set up.
    """
    refusal = may(caller, "attach")
    if refusal is not None or not isinstance(caller, OwnSession):
        return refusal
    is_other = provider not in ("", caller.provider)
    if session_id or native_pid or native_remote or is_other:
        return Refusal(
            "own_session_only",
            f"Below {caller.provider}, attach takes this chat and no other: "
            "--session, --native-pid, --native-remote and another --provider are "
            "refused.",
            "Run agentworks attach [NAME], or ask the person to choose a chat in a "
            "terminal of their own.",
        )
    if has_wishes:
        return Refusal(
            "person_only",
            "How messages come into a chat is the person's own choice: an agent may "
            "not use --at-prompt, --mid-turn, --no-wake, --tmux or --usual.",
            _TERMINAL,
        )
    if is_account_wide:
        return Refusal(
            "person_only",
            "What holds in all projects is the person's own choice: an agent may not "
            "use --global.",
            _TERMINAL,
        )
    if confirm:
        return Refusal(
            "person_only",
            "This attachment waits for the person's own yes, which an agent cannot "
            "give.",
            _TERMINAL,
        )
    return None


def may_take_name(
    caller: Caller, name: str, own_name: str = "", is_others: bool = False
) -> Refusal | None:
    """None when this caller may attach under this name.

    `own_name` is what its session is called now, empty when it has no name;
    `is_others`: the name belongs to another session, live or offline.
    """
    if not isinstance(caller, OwnSession):
        return None
    if own_name and fold_name(name) != fold_name(own_name):
        return Refusal(
            "rename_refused",
            f"This chat is attached as {own_name}, and an agent may not rename it.",
            "Run agentworks attach without a name, or ask the person.",
        )
    if is_others:
        return Refusal(
            "move_refused",
            f"The name {name} belongs to another chat, and an agent may not move it.",
            "Choose another name, or ask the person to attach in a terminal.",
        )
    return None


def may_detach(caller: Caller, made_by: str, is_own: bool) -> Refusal | None:
    """None when this caller may end this attachment.

    `made_by` is the attachment's (person or own); `is_own`: it is the caller's
    own session.
    """
    refusal = may(caller, "detach")
    if refusal is not None or not isinstance(caller, OwnSession):
        return refusal
    if is_own and made_by == "own":
        return None
    return Refusal(
        "person_only",
        "An agent may detach only its own chat, and only when it attached it itself.",
        "Ask the person to type the detach command in the chat or in a terminal.",
    )
