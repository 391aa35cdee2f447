"""Codex's server is the chat's own process or the one that the person named.

The desktop app is a double here: see tests/fakes/codex_desktop.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from bridge.core.caller import ProcessFacts
from bridge.core.ids import SessionId
from bridge.driver import codex_ways
from bridge.driver.bridge import Bridge
from bridge.errors import BridgeError
from bridge.routes.way import Way
from tests.core.examples import BOB
from tests.driver.desk import open_bridge
from tests.fakes.codex_desktop import desktop
from tests.fakes.codex_server import THREAD_ID, ScriptedCodex, codex_server
from tests.providers.captured import process

CHAT = replace(BOB, provider="codex", session_id=SessionId(THREAD_ID))


def process_of(*arguments: str, pid: int) -> ProcessFacts:
    return process("/opt/codex", "codex", *arguments, pid=pid)


def serving(server: ScriptedCodex, pid: int) -> ProcessFacts:
    return process_of("app-server", "--listen", f"unix://{server.path}", pid=pid)


async def found(bridge: Bridge, facts: ProcessFacts, *wants: str) -> Way | None:
    queue = bridge.new_queue(replace(CHAT, wants=wants))
    return await codex_ways.app_server(bridge, queue, facts)


async def test_the_chats_own_process_is_its_server(tmp_path: Path) -> None:
    async with open_bridge(tmp_path) as bridge, codex_server() as server:
        way = await found(bridge, serving(server, os.getpid()))

        assert way is not None
        assert way.address == f"unix://{server.path}"
        assert "turn/start" not in server.methods


async def test_another_process_in_its_place_is_not_asked(tmp_path: Path) -> None:
    async with open_bridge(tmp_path) as bridge, codex_server() as server:
        with pytest.raises(BridgeError, match="another program listens"):
            await found(bridge, serving(server, os.getppid()))

        assert server.asked == []


async def test_a_chat_without_a_server_has_no_way(tmp_path: Path) -> None:
    async with open_bridge(tmp_path) as bridge:
        assert await found(bridge, process_of("--no-daemon", pid=os.getpid())) is None
        assert await found(bridge, process_of("exec", "hello", pid=1)) is None


async def test_a_named_place_must_be_a_codex_servers(tmp_path: Path) -> None:
    facts = process_of("--no-daemon", pid=os.getpid())
    async with open_bridge(tmp_path) as bridge, codex_server() as server:
        with pytest.raises(BridgeError, match="another program listens"):
            await found(bridge, facts, f"unix://{server.path}")

        assert server.asked == []


async def test_its_own_place_may_be_named_too(tmp_path: Path) -> None:
    async with open_bridge(tmp_path) as bridge, codex_server() as server:
        facts = serving(server, os.getpid())

        assert await found(bridge, facts, f"unix://{server.path}") is not None


async def test_no_named_server_wakes_what_codex_exec_runs(tmp_path: Path) -> None:
    facts = process_of("exec", "hello", pid=os.getpid())
    async with open_bridge(tmp_path) as bridge, codex_server() as server:
        with pytest.raises(BridgeError, match="belongs to codex exec"):
            await found(bridge, facts, f"unix://{server.path}")

        assert server.asked == []


async def test_a_named_desktop_app_that_started_the_chat_is_its_way(
    tmp_path: Path,
) -> None:
    facts = process_of("app-server", pid=os.getpid())
    async with open_bridge(tmp_path) as bridge, desktop() as app:
        queue = bridge.new_queue(replace(CHAT, wants=(f"desktop+unix://{app.path}",)))
        way = await codex_ways.desktop(bridge, queue, facts)

        assert way is not None
        assert way.address == f"desktop+unix://{app.path}"


async def test_an_app_that_did_not_start_the_chat_is_not_asked(tmp_path: Path) -> None:
    facts = process_of("app-server", pid=os.getppid())
    async with open_bridge(tmp_path) as bridge, desktop() as app:
        queue = bridge.new_queue(replace(CHAT, wants=(f"desktop+unix://{app.path}",)))
        with pytest.raises(BridgeError, match="another program listens"):
            await codex_ways.desktop(bridge, queue, facts)

        assert app.heard == []


@pytest.mark.parametrize("wants", [(), ("unix:///run/own.sock",)])
async def test_no_desktop_app_is_looked_for(
    tmp_path: Path, wants: tuple[str, ...]
) -> None:
    facts = process_of("app-server", pid=os.getpid())
    async with open_bridge(tmp_path) as bridge:
        queue = bridge.new_queue(replace(CHAT, wants=wants))
        assert await codex_ways.desktop(bridge, queue, facts) is None
