"""Running: start, orderly stop, kill -9 and restart, one server per database."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio

from bridge.clock import SystemClock
from bridge.errors import StorageBroken, Unavailable
from bridge.log import open_log
from bridge.server.limits import Settings
from bridge.server.listening import open_listener
from bridge.server.run import bootstrap_parent, serve, write_parent
from tests.fakes.clock import FakeClock
from tests.fakes.message_server import (
    BRIDGE,
    NET_S,
    Lease,
    Served,
    caller,
    good,
    refusal,
    served,
)

ROOT = Path(__file__).resolve().parents[2]


class Alone:
    """A server process of its own, which may be killed and started again."""

    def __init__(self, folder: Path) -> None:
        self.socket_path = folder / "server.sock"
        self.database = folder / "server.sqlite3"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.process = subprocess.Popen(
            [
                sys.executable,
                str(Path(__file__).with_name("alone.py")),
                str(self.socket_path),
                str(self.database),
            ],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )

    def end(self, number: signal.Signals = signal.SIGKILL) -> int:
        assert self.process is not None
        self.process.send_signal(number)
        return self.process.wait(NET_S)

    def client(self) -> httpx.AsyncClient:
        transport = httpx.AsyncHTTPTransport(uds=str(self.socket_path))
        return httpx.AsyncClient(
            transport=transport, base_url="http://bridge", timeout=NET_S
        )

    async def token(self) -> str:
        """The parent's token, once the new server answers to it."""
        with trio.fail_after(NET_S):
            while True:
                with suppress(OSError, httpx.TransportError):
                    text = self.database.with_name("parent.json").read_text()
                    token: str = json.loads(text)["token"]
                    async with self.client() as client:
                        answer = await client.get(
                            f"{BRIDGE}/hello", headers=caller(token)
                        )
                    if answer.status_code == 200:
                        return token
                await trio.sleep(0.02)


@pytest.fixture
async def alone(tmp_path: Path) -> AsyncIterator[Alone]:
    server = Alone(tmp_path)
    server.start()
    yield server
    if server.process is not None and server.process.poll() is None:
        server.end()


async def attach(client: httpx.AsyncClient, token: str, name: str) -> Lease:
    body = {"name": name, "provider": "script", "session_id": name, "host_id": "here"}
    answer = await client.post(
        f"{BRIDGE}/attachments", headers=caller(token), json=body
    )
    return Lease(client, good(answer))


async def test_a_killed_server_has_every_message_it_acknowledged(
    alone: Alone,
) -> None:
    token = await alone.token()
    acknowledged: list[str] = []
    async with alone.client() as client:
        alice = await attach(client, token, "alice")
        bob = await attach(client, token, "bob")

        async def send(number: int) -> None:
            with suppress(httpx.TransportError):
                sent = good(await alice.send("bob", f"{number}", f"{number}"))
                acknowledged.append(sent["message_id"])

        for number in range(25):
            await send(number)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(send, 25)
            await trio.testing.wait_all_tasks_blocked()
            # One is in the air, stored or not.
            alone.end()
    alone.start()
    await alone.token()

    async with alone.client() as client:
        bob.client = alice.client = client
        stored: list[str] = []
        page: dict[str, Any] = {"next_cursor": 0, "messages": [1]}
        while page["messages"]:
            page = good(await bob.get("read", after=page["next_cursor"], limit=100))
            stored += [message["message_id"] for message in page["messages"]]
        last = len(acknowledged)
        retried = good(await alice.send("bob", f"{last}", f"{last}"))
        again = good(await alice.send("bob", "0", "0"))

    assert stored[: len(acknowledged)] == acknowledged
    assert len(stored) <= len(acknowledged) + 1
    # The one in the air is found by its submission id, not stored twice.
    assert retried["sequence"] == len(acknowledged) + 1
    assert again["message_id"] == acknowledged[0]


async def test_a_restarted_server_carries_on_with_leases_cursors_and_receipts(
    alone: Alone,
) -> None:
    token = await alone.token()
    async with alone.client() as client:
        alice = await attach(client, token, "alice")
        bob = await attach(client, token, "bob")
        first = good(await alice.send("bob", "first", "1"))["message_id"]
        await bob.say(first, "admitted")
        good(await alice.send("bob", "second", "2"))
    alone.end()
    alone.start()
    fresh = await alone.token()

    async with alone.client() as client:
        alice.client = bob.client = client
        async with bob.stream(0) as stream:
            assert (await stream.next_of("message"))["message"] == "second"
        async with alice.stream(0, receipts_after=0) as stream:
            assert (await stream.next_of("receipt"))["number"] == 1
        old = await client.get(f"{BRIDGE}/hello", headers=caller(token))
        again = await attach(client, fresh, "bob")

    assert refusal(old, 401)["code"] == "invalid_token"
    assert again.id == bob.id


async def test_the_parents_file_is_private_and_the_socket_goes_at_the_end(
    alone: Alone,
) -> None:
    await alone.token()
    parent = alone.database.with_name("parent.json")

    modes = {parent.stat().st_mode & 0o777, alone.socket_path.stat().st_mode & 0o777}
    alone.end(signal.SIGINT)

    assert modes == {0o600}
    assert not alone.socket_path.exists()
    # Emptied by the last checkpoint.
    assert not alone.database.with_name("server.sqlite3-wal").exists()


@asynccontextmanager
async def second_server(folder: Path, clock: FakeClock) -> AsyncIterator[Served]:
    async with served(folder, Settings(), clock) as running:
        yield running


async def test_an_orderly_restart_keeps_tokens_and_mail(
    tmp_path: Path, fake_clock: FakeClock
) -> None:
    async with served(tmp_path, Settings(), fake_clock) as server:
        alice, bob = await server.attach("alice"), await server.attach("bob")
        good(await alice.send("bob", "hello", "one"))
        async with bob.stream(0) as stream:
            await stream.until("message")
    fake_clock.advance(30.0)

    async with second_server(tmp_path, fake_clock) as server:
        bob.client = server.client
        page = good(await bob.get("read"))
        seen = (await server.agents())["bob"]

    assert [message["message"] for message in page["messages"]] == ["hello"]
    assert seen["connected"] is False
    assert seen["since"] == "2026-09-21T14:13:20Z"


async def test_open_streams_end_plainly_when_the_server_stops(
    tmp_path: Path, fake_clock: FakeClock
) -> None:
    listener = open_listener(tmp_path / "server.sock")
    database = tmp_path / "server.sqlite3"
    token = bootstrap_parent(database, fake_clock)
    log = open_log(io.StringIO(), fake_clock)
    transport = httpx.AsyncHTTPTransport(uds=str(tmp_path / "server.sock"))
    async with httpx.AsyncClient(
        transport=transport, base_url="http://bridge", timeout=NET_S
    ) as client:
        async with trio.open_nursery() as nursery:
            server = trio.CancelScope()

            async def run(task_status: trio.TaskStatus[None]) -> None:
                with server:
                    await serve(
                        listener,
                        database,
                        Settings(),
                        fake_clock,
                        log,
                        task_status=task_status,
                    )

            await nursery.start(run)
            bob = await attach(client, token, "bob")
            async with bob.stream(0) as stream:
                await stream.until("alive")
                server.cancel()

                assert all(name == "alive" for name, _ in await stream.rest())

        with pytest.raises(httpx.TransportError):
            await client.get(f"{BRIDGE}/hello", headers=caller(token))


async def test_a_call_under_way_is_answered_when_the_server_stops(
    tmp_path: Path, fake_clock: FakeClock
) -> None:
    answers: list[httpx.Response] = []
    async with served(tmp_path, Settings(), fake_clock) as server:
        alice, _ = await server.attach("alice"), await server.attach("bob")

        async def send() -> None:
            answers.append(await alice.send("bob", "hello", "one"))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(send)
            await trio.testing.wait_all_tasks_blocked()
            # The request is with the server; now it is told to stop.
            server.stop()

    assert good(answers[0])["accepted"] is True


async def test_a_second_server_of_a_database_is_refused(
    tmp_path: Path, server: Served
) -> None:
    listener = open_listener(tmp_path / "second.sock")
    log = open_log(io.StringIO(), server.clock)

    with pytest.raises(Unavailable) as caught:
        await serve(
            listener, tmp_path / "server.sqlite3", Settings(), server.clock, log
        )

    assert caught.value.code == "already_served"
    assert listener.fileno() == -1
    assert await server.agents() == {}


async def test_a_database_that_breaks_ends_the_server(
    tmp_path: Path, fake_clock: FakeClock
) -> None:
    with pytest.RaisesGroup(StorageBroken, flatten_subgroups=True):
        async with served(tmp_path, Settings(), fake_clock) as server:
            bob = await server.attach("bob")
            # The file is damaged under the server; what it holds is not trusted.
            path = tmp_path / "server.sqlite3"
            await server.change(lambda unit: None)
            path.write_bytes(b"noise" * 100_000)
            (tmp_path / "server.sqlite3-wal").write_bytes(b"")

            with trio.fail_after(NET_S), suppress(httpx.TransportError):
                while True:
                    answer = await bob.get("read")
                    assert answer.status_code == 503, answer.text
            await trio.sleep_forever()

    assert path.read_bytes().startswith(b"noise")


def test_the_parents_token_is_rotated_and_only_the_newest_works(
    tmp_path: Path,
) -> None:
    database = tmp_path / "server.sqlite3"

    first = bootstrap_parent(database, SystemClock())
    second = bootstrap_parent(database, SystemClock())

    assert first != second
    assert second.startswith("aw_cli_")
    assert second.encode() not in database.read_bytes()


def test_the_parents_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "parent.json"
    path.write_text("older")
    (tmp_path / "parent.json.new").write_text("left by a crash")

    write_parent(path, "aw_cli_x")

    assert json.loads(path.read_text()) == {
        "account": "local",
        "connection_id": "oauth-local",
        "token": "aw_cli_x",
    }
    assert path.stat().st_mode & 0o777 == 0o600
    assert [file.name for file in tmp_path.iterdir()] == ["parent.json"]


async def test_a_server_that_must_not_serve_leaves_the_login_of_who_does(
    alone: Alone, tmp_path: Path
) -> None:
    token = await alone.token()
    second = Alone(tmp_path)
    second.socket_path = tmp_path / "second.sock"
    second.start()
    assert second.process is not None
    with trio.fail_after(NET_S):
        ended = await trio.to_thread.run_sync(second.process.wait, NET_S)

    assert ended != 0
    assert not second.socket_path.exists()
    assert await alone.token() == token
