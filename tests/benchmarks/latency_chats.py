"""The real chats whose latency is measured, each idle and attached as bob.

Owns how each is opened and what the hand of its row does. Promises that `write`
takes the shortest way that the program itself has, and says when it began.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from types import MappingProxyType

import msgspec
import trio
from msgspec import Struct

from bridge.clock import SystemClock
from bridge.core.ids import SessionId
from bridge.routes import qwen_input
from bridge.routes.codex_rpc import CodexRpc
from tests.fakes.model_server import ModelServer
from tests.real_clients import codex_chats, extension_chats
from tests.real_clients.claude_chats import allow_tools, attach_waking, open_talk
from tests.real_clients.house import House
from tests.real_clients.rig import programs
from tests.real_clients.rig.claude import ClaudeRig
from tests.real_clients.rig.codex import CodexRig
from tests.real_clients.rig.opencode import OpencodeRig
from tests.real_clients.rig.pi import PiRig
from tests.real_clients.rig.qwen import QwenRig
from tests.real_clients.rig.waiting import wait_until

WAIT_S = 60.0


class IdleChat(Struct, frozen=True):
    """One open chat.

    `write` hands a text over by hand and returns when it began, in seconds of the
    running clock; `rest` returns when the chat is idle again.
    """

    model: ModelServer
    write: Callable[[str], Awaitable[float]]
    rest: Callable[[], Awaitable[object]]


class Kind(Struct, frozen=True):
    """One program: where it is, how a chat of it is opened, what the hand does."""

    title: str
    hand: str
    programs: tuple[Path, ...]
    open: Callable[[House], AbstractAsyncContextManager[IdleChat]]

    @property
    def is_installed(self) -> bool:
        """Whether it can be measured here."""
        return all(each.exists() for each in self.programs)


@asynccontextmanager
async def _claude(house: House) -> AsyncIterator[IdleChat]:
    rig = ClaudeRig(house.computer, programs.claude_program())
    try:
        await house.install("claude")
        allow_tools(rig)
        talk = await open_talk(rig, "chat")
        await attach_waking(rig, house, talk)

        async def write(text: str) -> float:
            await trio.lowlevel.checkpoint()
            begun = SystemClock().running()
            talk.chat.write_to_socket(text)
            return begun

        yield IdleChat(rig.model, write, talk.chat.wait_idle)
    finally:
        await rig.stop()


@asynccontextmanager
async def _codex(house: House) -> AsyncIterator[IdleChat]:
    rig = CodexRig(house.computer, programs.codex_program())
    try:
        await codex_chats.install(house)
        talk = await codex_chats.open_talk(rig, "bob", daemon=True, review=True)
        ended = _counting(lambda: talk.turns_ended)
        command = codex_chats.ATTACH.format(name="bob")
        await talk.command(command, "Attached as bob")
        await ended()

        async def write(text: str) -> float:
            said = [{"type": "text", "text": text}]
            server = await CodexRpc.open(str(rig.daemon_socket), lambda peer: True)
            async with server:
                thread = await server.thread(SessionId(talk.thread_id))
                begun = SystemClock().running()
                turn = {"threadId": thread.id, "input": said}
                await server.ask("turn/start", turn, msgspec.Raw)
            return begun

        yield IdleChat(rig.model, write, ended)
    finally:
        await rig.stop()


@asynccontextmanager
async def _pi(house: House) -> AsyncIterator[IdleChat]:
    rig = PiRig(house.computer, programs.node_program(), programs.pi_program())
    try:
        await house.install("pi")
        chat = await rig.open_chat()
        yield await _typed(house, chat)
    finally:
        await rig.stop()


@asynccontextmanager
async def _opencode(house: House) -> AsyncIterator[IdleChat]:
    rig = OpencodeRig(house.computer, programs.opencode_program())
    try:
        await house.install("opencode")
        chat = await rig.open_chat()
        yield await _typed(house, chat)
    finally:
        await rig.stop()


@asynccontextmanager
async def _qwen(house: House) -> AsyncIterator[IdleChat]:
    rig = QwenRig(house.computer, programs.qwen_program())
    try:
        await house.install("qwen")
        prompts = house.computer.home / "prompts"
        prompts.touch(0o600)
        options = ("--yolo", "--input-file", str(prompts))
        chat = await rig.open_chat("qwen", *options)
        await chat.type("/agentworks attach bob")
        await wait_until(lambda: rig.model.turns(), "the setup text", WAIT_S)
        await house.until_row("bob", state="attached", pending=0)

        async def write(text: str) -> float:
            await trio.lowlevel.checkpoint()
            begun = SystemClock().running()
            with prompts.open("ab") as file:
                file.write(qwen_input.line(text))
            return begun

        async def rest() -> None:
            answer = rig.model.turns()[-1].answer
            await chat.pane.wait_text(answer.say if answer is not None else "", WAIT_S)

        await rest()
        yield IdleChat(rig.model, write, rest)
    finally:
        await rig.stop()


async def _typed(house: House, chat: extension_chats.Chat) -> IdleChat:
    """Attached; a chat that has no way of its own but its composer."""
    model = chat.rig.model
    await chat.type("/agentworks attach bob")
    setup = await extension_chats.brought(model, "for bob (")
    await extension_chats.answered(chat, setup)
    await house.until_row("bob", state="attached", pending=0)

    async def write(text: str) -> float:
        line = text.rstrip(".")
        chat.pane.write(line)
        await chat.pane.wait_text(line[-20:].strip(), WAIT_S)
        begun = SystemClock().running()
        chat.pane.press("Enter")
        return begun

    async def rest() -> None:
        answer = model.turns()[-1].answer
        await chat.pane.wait_text(answer.say if answer is not None else "", WAIT_S)

    return IdleChat(model, write, rest)


def _counting(ended: Callable[[], int]) -> Callable[[], Awaitable[object]]:
    """Waits until one turn more has ended than when it was asked last."""
    known = ended()

    async def rest() -> None:
        nonlocal known
        await wait_until(lambda: ended() > known, "the end of the turn", WAIT_S)
        known = ended()

    return rest


_SOCKET, _ENTER = "a write to its socket", "Enter behind a typed line"
_PI = (programs.node_program(), programs.pi_program())
_QWEN = (programs.node_program(), programs.qwen_program())
KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        "claude": Kind("Claude Code", _SOCKET, (programs.claude_program(),), _claude),
        "codex": Kind("Codex", _SOCKET, (programs.codex_program(),), _codex),
        "pi": Kind("Pi", _ENTER, _PI, _pi),
        "opencode": Kind("opencode", _ENTER, (programs.opencode_program(),), _opencode),
        "qwen": Kind("Qwen Code", "a line in its input file", _QWEN, _qwen),
    }
)
"""What can be measured, by the name on the command line."""
