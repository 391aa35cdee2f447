"""Every other fixed sentence that a person or an agent is shown.

Owns the answers to what is typed in a chat, the one line of a session's start,
the lines for the person, and why an agent's command or tool did nothing. Each
says what happened, what it means and what to do. Promises that names, reasons
and times in them are on one line and safe to show on a terminal.
"""

from __future__ import annotations

from collections.abc import Sequence

from bridge.core.command import chat_word
from bridge.core.standing import HOOKS_NOT_LOADED, route_words
from bridge.core.visible import label, one_line

WAKE_TEST = (
    "This is AgentWorks' wake test, begun by the person at their terminal to see "
    "whether messages reach this chat. It asks for nothing but its acknowledgement: "
    "agent_message_ack with delivery processed. No reply is needed."
)
"""The one text that a wake test sends."""

MID_TURN_HOOK = (
    "For messages in the middle of a turn its project needs one more hook; if it has "
    "none yet, run in its folder: agentworks attach --mid-turn"
)
"""What a chat says of a wish that needs something in its project."""

_PATH_SHOWN = 4096


# ---- attach and detach, answered in the chat ------------------------------------


def attached(
    name: str, route: str, waiting: int = 0, is_again: bool = False, client: str = ""
) -> str:
    """The chat has this name now; `is_again` when it had it before.

    `client` is the hook client as it can be pasted, for a script.
    """
    again = " again" if is_again else ""
    text = f"Attached{again} as {label(name)}. {_route(route, client)}"
    if waiting == 0:
        return text
    count = "1 message is" if waiting == 1 else f"{waiting} messages are"
    return f"{text} {count} waiting."


def wake_notice(provider: str, mode: str = "") -> str:
    """Said at an attach to a chat whose program lets messages start turns.

    `mode` is the host's own word for what its agent may do unasked, if it is known.
    """
    own = "approvals and sandbox" if provider == "codex" else "permissions"
    now = f" (now: {label(mode)})" if mode else ""
    how = f"type in the chat: {chat_word(provider)} attach --no-wake"
    if provider == "agy":  # its chats have no command of ours
        how = "run: agentworks attach NAME --no-wake"
    return (
        f"Messages may start turns in this chat by themselves, under its own {own}"
        f"{now}. To have them wait until a turn ends, {how}"
    )


def name_held(name: str, holder: str, since: str, provider: str) -> str:
    """The name belongs to a live chat; `holder` and `since` say which."""
    how = f"type {chat_word(provider)} attach"
    if provider == "script":
        how = "run agentworks attach"
    return (
        f"Nothing was attached: {label(name)} is the name of a live {label(holder)} "
        f"chat since {label(since)}. Detach it there first, or {how} with another NAME."
    )


def not_to_be_woken(*, in_settings: bool) -> str:
    """The person wants no message to start a turn, in this chat or in any."""
    if in_settings:
        return "No message starts a turn by itself: the settings say so (wake: never)."
    return "No message starts a turn here, as you chose; attach --usual ends that."


def attach_in_progress(name: str | None) -> str:
    """Shown when an attach takes longer than the host's hook may."""
    who = f" as {label(name)}" if name else ""
    return (
        f"Attaching{who} takes longer than this prompt can wait. It goes on; see the "
        "result with: agentworks agents"
    )


def detached(name: str, unsent: Sequence[str] = ()) -> str:
    """The chat has no name any more; `unsent` are submission ids never sent."""
    text = (
        f"Detached {label(name)}: other agents reach this chat no more, and its "
        "connection was revoked. The name stays registered."
    )
    if not unsent:
        return text
    listed = ", ".join(label(submission_id) for submission_id in unsent)
    return f"{text} Never sent, and dropped with it: {listed}"


def not_attached(provider: str) -> str:
    """Detach was asked for in a chat without a name."""
    return (
        "Nothing was detached: this chat is not attached. To attach it, type "
        f"{chat_word(provider)} attach"
    )


# ---- who is attached -------------------------------------------------------------


def cut_off(names: Sequence[str], code: str) -> str:
    """For the person: the server is not there for these chats; `code` says why."""
    who = ", ".join(label(name) for name in names)
    return (
        f"No connection to the message server for {who} ({label(code)}): no new "
        "message comes, and what they send waits here. It is tried again by itself."
    )


def nobody_attached(name: str, nearest: Sequence[str]) -> str:
    """No chat of this computer has this name; the nearest ones, if any are near."""
    text = f"No chat of this computer is attached as {label(name)}."
    if not nearest:
        return f"{text} See who is: agentworks agents"
    return f"{text} Did you mean {' or '.join(label(each) for each in nearest)}?"


# ---- lines for the person ----------------------------------------------------------


def session_started(name: str, provider: str) -> str:
    """The one line at the start of a session whose identity is offline."""
    return (
        f"AgentWorks: this chat was attached as {label(name)} and is offline. "
        f"To reconnect it, type {chat_word(provider)} attach"
    )


def plugin_needs_reload(provider: str) -> str:
    """The hooks were installed while the chat was running."""
    how = "Type /reload-plugins in it"
    if provider == "codex":
        how = "Type /hooks in it and trust the AgentWorks hooks"
    return (
        f"This chat was running before the AgentWorks hooks were installed and has "
        f"not loaded them yet, so no message can reach it. {how}, or start it anew."
    )


def told_person(code: str, name: str) -> str:
    """One sentence about an attachment, by a TellPerson code or the driver's own."""
    who = label(name)
    sentences = {
        "held": (
            f"{who} waits for your confirmation and gets no messages until then: "
            "type the attach command in its chat."
        ),
        "replaced": (
            f"The earlier attachment of {who} was replaced by a newer attachment of "
            "its name or of its chat, and gets no more messages. To have the name back "
            "in the earlier chat, type the attach command there."
        ),
        "revoked": (
            f"The connection of {who} was revoked. To connect it anew, type the "
            "attach command in its chat."
        ),
        "unregistered": f"The name {who} was unregistered, so its chat is detached.",
        "token_refused": (
            f"The server no longer accepts the connection of {who}, so it is offline; "
            "its messages are kept. Type the attach command in its chat."
        ),
        "journal_full": (
            f"There was no room for another message of {who}, so the server keeps "
            "the rest of them until there is. Its next turns make room."
        ),
        "not_notified": (
            f"A desktop notification that mail waits for {who} could not be shown, "
            "nor will later ones be told of here. Messages come by hooks all the same."
        ),
        "room_again": f"There is room again for the messages of {who}.",
        "stream_stuck": (
            f"The server sent {who} something that cannot be read, three times at the "
            "same place. If a message stands there, it is fetched by itself; one that "
            "is too large even so is passed over and found by an explicit read."
        ),
    }
    sentences |= _told_of_ways(who)
    return sentences.get(code, f"{who}: {label(code)}")


def _told_of_ways(who: str) -> dict[str, str]:
    """What became of an offer that went to the chat's own program."""
    return {
        "native_refused": (
            f"{who} could not be reached at once, and no second try is made: what "
            "waits comes when its next turn ends, or is read explicitly."
        ),
        "native_held": (
            f"Claude Code holds the last messages for {who} until you approve them in "
            "its chat, since its settings or permission modes ask for that. The next "
            "ones come when a turn of it ends."
        ),
        "native_not_let_in": (
            f"The chat of {who} turned the last messages away, as its setting "
            "crossSessionInbound says. They come when a turn of it ends."
        ),
        "native_unknown": (
            f"It is not known whether the last messages reached {who}. They are not "
            "repeated: their ids are named in its next offer, and it can read them."
        ),
    }


# ---- what became of a message ------------------------------------------------------

RECEIPT_NOT_KNOWN = (
    "The server has it. It does not answer now, so whether the message was read is not "
    "known. Ask again later."
)


def became_of(
    recipient: str,
    delivery: str,
    *,
    observed: str = "",
    at: str | None = None,
    taken_back: str = "",
    offline_since: str | None = None,
) -> str:
    """What a sender may conclude of its message, and since when nobody is there.

    `delivery` and `observed` are the server's words, `at` when the receipt was
    given, `taken_back` why it was retracted, empty when it was not.
    """
    who = label(recipient)
    text = _receipt_text(who, delivery, observed, f" at {label(at)}" if at else "")
    if taken_back and delivery not in ("admitted", "processed"):
        text = f"It was taken back ({label(taken_back)}) before {who} had said a word."
    if offline_since:
        text += f" {who} is offline since {label(offline_since)}."
    return text


def _receipt_text(who: str, delivery: str, observed: str, when: str) -> str:
    match delivery, observed:
        case "processed", _:
            return f"{who} has dealt with it (processed{when})."
        case "admitted", _:
            return f"{who} has it (admitted{when}) and has not said more."
        case "forgotten", _:
            return "The server keeps it no more, since its conversation was full."
        case _, "offered":
            return f"It was offered to {who}, who has not acknowledged it."
        case _, "unsure":
            return (
                f"It may or may not have reached {who}: its id is named there once, "
                "and it is not repeated."
            )
        case _:
            return f"The server has it; {who} has not acknowledged it."


# ---- why nothing was done ----------------------------------------------------------


def bridge_not_running(program: str = "agentworks") -> str:
    """Nobody answered at the socket."""
    return (
        "The AgentWorks bridge is not running, so nothing was done. Start it with: "
        f"{program} up"
    )


def tool_of_unattached_chat(provider: str) -> str:
    """A messaging tool or command was used in a chat without a name."""
    if provider == "script":
        return (
            "This process is not attached to AgentWorks, so it has no messages and "
            "can send none. The person attaches it from a terminal: agentworks attach "
            "NAME --provider script --native-pid PID"
        )
    return (
        "This chat is not attached to AgentWorks, so it has no messages and can send "
        f"none. Only the person attaches it, by typing {chat_word(provider)} attach in "
        "this chat or by asking you to run: agentworks attach"
    )


def sandboxed() -> str:
    """The shell's sandbox forbids the bridge's socket."""
    return (
        "The sandbox of this shell forbids the bridge's socket, so nothing was done; "
        "the bridge itself may well be running. Use the agent_message tools, which "
        "run outside of the sandbox, or ask the person to allow this one command."
    )


def retired_message(message_id: str, program: str, provider: str) -> str:
    """A reply to a message that the bridge has forgotten."""
    return (
        f"{label(message_id)} is no longer kept here, so the bridge does not know its "
        "inbox. Find it and answer by inbox: "
        f"{label(program)} bridge message read --provider {label(provider)}, then "
        "agent_message_reply with the inbox id."
    )


def _route(route: str, client: str) -> str:
    if client:
        return (
            "Messages come when it asks for them, from a process below it: "
            f"{one_line(client, _PATH_SHOWN)} hook script stop"
        )
    if route == HOOKS_NOT_LOADED:
        return "Its hooks are not loaded yet, so messages cannot come."
    if route == "hook":
        return "Messages come through its hooks when a turn ends."
    return f"Messages come {route_words(route)}."
