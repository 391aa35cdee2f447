"""The command that a person typed in a chat, answered there.

Promises that a typed command never reaches the model: whatever comes of it is
printed as the host's block.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bridge.core import standing, texts
from bridge.core.command import (
    AgentsCommand,
    AttachCommand,
    Command,
    DetachCommand,
    UsageCommand,
)
from bridge.core.records import Want
from bridge.core.visible import visible
from bridge.driver import attaching, chats, table
from bridge.driver.bridge import Bridge
from bridge.errors import BridgeError
from bridge.local.dialogue import HookDialogue

if TYPE_CHECKING:
    from bridge.driver.hooks import Hook

ATTACH_WAIT_S = 12


async def answer_command(
    bridge: Bridge, dialogue: HookDialogue, hook: Hook, command: Command
) -> None:
    """Carry it out and print what came of it."""
    name = command.name if isinstance(command, AttachCommand) else None
    fallback = texts.attach_in_progress(name)
    block = hook.provider.print_block
    await dialogue.wait(ATTACH_WAIT_S, block(hook.said.event, fallback))
    try:
        text = await _carry_out(bridge, hook, command)
    except BridgeError as error:
        text = visible(error.sentence())
    await dialogue.answer(block(hook.said.event, text))


async def _carry_out(bridge: Bridge, hook: Hook, command: Command) -> str:
    match command:
        case AttachCommand():
            return await _attach(bridge, hook, command)
        case DetachCommand():
            return await _detach(bridge, hook)
        case AgentsCommand():
            return standing.agents_table(table.rows(bridge))
        case UsageCommand(text=text):
            return text


async def _attach(bridge: Bridge, hook: Hook, command: AttachCommand) -> str:
    said = hook.said
    wish = attaching.Wish(
        provider=hook.provider.NAME,
        session_id=said.session_id,
        key=hook.key,
        name=command.name or "",
        folder=said.folder,
        by_hook=True,
        native_remote=_remote(hook, command),
        wants=command.wants,
    )
    bridge.note_privileged("attach", f"a prompt in {hook.provider.TITLE}")
    done = await attaching.attach(bridge, wish)
    route = table.route(bridge, done.record)
    text = texts.attached(done.record.name, route, done.waiting, done.is_again)
    if Want.MID_TURN in (command.wants or ()):
        text = f"{text} {texts.MID_TURN_HOOK}"
    if done.record.native_route:
        return f"{text} {texts.wake_notice(hook.provider.NAME, said.mode)}"
    queue = bridge.roster.get(done.record.attachment_id)
    why = table.why_not_woken(bridge, queue) if queue is not None else ""
    return f"{text} {why}".rstrip()


def _remote(hook: Hook, command: AttachCommand) -> str:
    """The way that the person named, if it can lead to this chat; raises Refused."""
    provider, session_id = hook.provider.NAME, hook.said.session_id
    remote = chats.checked_remote(command.native_remote, provider)
    if remote is not None:
        chats.check_own(remote, session_id, hook.caller.process)
    return command.native_remote


async def _detach(bridge: Bridge, hook: Hook) -> str:
    queue = bridge.roster.known(hook.provider.NAME, hook.said.session_id)
    if queue is None:
        return texts.not_attached(hook.provider.NAME)
    bridge.note_privileged("detach", f"a prompt in {hook.provider.TITLE}")
    return texts.detached(queue.record.name, await attaching.detach(bridge, queue))
