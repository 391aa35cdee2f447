"""A real message server on a real Unix socket, and bridges that talk to it.

Nothing here is a fake of the server: only the clock is moved by hand, and the
bridges are a few lines of httpx that hold tokens and say what a test needs.
"""

from __future__ import annotations

import io
import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import httpx
import trio
from httpx_sse import EventSource, ServerSentEvent

from bridge.clock import Clock
from bridge.log import open_log
from bridge.server.auth import LOCAL_ACCOUNT, open_parent
from bridge.server.database import Database
from bridge.server.limits import Settings
from bridge.server.listening import open_listener
from bridge.server.presence import Presence
from bridge.server.run import bootstrap_parent, serve
from bridge.server.store import Unit
from tests.fakes.clock import FakeClock

T = TypeVar("T")

BRIDGE = "/api/external/v1/bridge"
CALL = "/api/external/v1/call"
# The net under a wait on a condition; nothing is timed by it.
NET_S = 30.0


def caller(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def good(response: httpx.Response) -> Any:
    assert response.status_code == 200, response.text
    return response.json()


def refusal(response: httpx.Response, status: int) -> Any:
    """The error object of a refused call."""
    assert response.status_code == status, response.text
    return response.json()["error"]


class Stream:
    """One open event stream; its reader puts whole events into a channel."""

    def __init__(self, events: trio.MemoryReceiveChannel[ServerSentEvent]) -> None:
        self._events = events

    async def next(self) -> tuple[str, Any]:
        """The next event's name and body."""
        event = await self.next_raw()
        return event.event, event.json()

    async def next_raw(self) -> ServerSentEvent:
        with trio.fail_after(NET_S):
            return await self._events.receive()

    async def until(self, name: str) -> list[tuple[str, Any]]:
        """Everything up to and including the first event of this name."""
        seen = [await self.next()]
        while seen[-1][0] != name:
            seen.append(await self.next())
        return seen

    async def next_of(self, name: str) -> Any:
        """The body of the next event of this name."""
        return (await self.until(name))[-1][1]

    async def rest(self) -> list[tuple[str, Any]]:
        """All events until the server ends the body."""
        with trio.fail_after(NET_S):
            return [(event.event, event.json()) async for event in self._events]


async def _read_events(
    response: httpx.Response, into: trio.MemorySendChannel[ServerSentEvent]
) -> None:
    # Ended by cancelling this task, never by leaving the loop: httpx's nested
    # generators are then unwound from the inside.
    async with into:
        async for event in EventSource(response).aiter_sse():
            # httpx-sse repeats the last id in an empty event at a blank line.
            if event.data:
                into.send_nowait(event)


class Lease:
    """An attached agent: its attachment, its child's tokens, its calls."""

    def __init__(self, client: httpx.AsyncClient, answer: dict[str, Any]) -> None:
        self.client = client
        self.answer = answer
        self.id: str = answer["attachment_id"]
        self.child: dict[str, Any] = answer["child"] or {}
        self.path = f"{BRIDGE}/attachments/{self.id}"

    @property
    def headers(self) -> dict[str, str]:
        return caller(self.child["access_token"])

    async def post(self, word: str, body: Any) -> httpx.Response:
        return await self.client.post(
            f"{self.path}/{word}", headers=self.headers, json=body
        )

    async def get(self, word: str, **query: Any) -> httpx.Response:
        return await self.client.get(
            f"{self.path}/{word}", headers=self.headers, params=query
        )

    async def put_purpose(self, text: str) -> httpx.Response:
        return await self.client.put(
            f"{self.path}/purpose", headers=self.headers, json={"purpose": text}
        )

    async def send(self, target: str, text: str, submission_id: str) -> httpx.Response:
        body = {"target": target, "message": text, "submission_id": submission_id}
        return await self.post("send", body)

    async def reply(
        self, inbox_id: str, text: str, submission_id: str
    ) -> httpx.Response:
        body = {"inbox_id": inbox_id, "message": text, "submission_id": submission_id}
        return await self.post("send", body)

    async def say(self, message_id: str, delivery: str) -> Any:
        sign = {"message_id": message_id, "delivery": delivery, "at": 1.0}
        return good(await self.post("receipts", {"receipts": [sign]}))

    @asynccontextmanager
    async def stream(
        self, cursor: int | None = None, **query: Any
    ) -> AsyncIterator[Stream]:
        headers = self.headers
        if cursor is not None:
            headers["last-event-id"] = str(cursor)
        async with self.client.stream(
            "GET", f"{self.path}/stream", headers=headers, params=query
        ) as response:
            assert response.status_code == 200, await response.aread()
            into, events = trio.open_memory_channel[ServerSentEvent](math.inf)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_read_events, response, into)
                yield Stream(events)
                nursery.cancel_scope.cancel()


class Served:
    """A running server, its clock, and the person's login."""

    def __init__(
        self, folder: Path, clock: FakeClock, token: str, client: httpx.AsyncClient
    ) -> None:
        self.folder = folder
        self.clock = clock
        self.token = token
        self.client = client
        self.log = io.StringIO()
        self.scope = trio.CancelScope()

    @property
    def headers(self) -> dict[str, str]:
        return caller(self.token)

    async def try_attach(self, name: str | None, **more: Any) -> httpx.Response:
        body = {
            "name": name,
            "provider": "script",
            "session_id": f"session of {name!r}"[:256],
            "host_id": "here",
            **more,
        }
        return await self.client.post(
            f"{BRIDGE}/attachments", headers=self.headers, json=body
        )

    async def attach(self, name: str | None, **more: Any) -> Lease:
        return Lease(self.client, good(await self.try_attach(name, **more)))

    async def call(self, action: str, **arguments: Any) -> httpx.Response:
        body = {"name": "messages", "arguments": {"action": action, **arguments}}
        return await self.client.post(CALL, headers=self.headers, json=body)

    async def agents(self) -> dict[str, Any]:
        found = good(await self.client.get(f"{BRIDGE}/agents", headers=self.headers))
        return {agent["name"]: agent for agent in found["agents"]}

    async def refresh(self, refresh_token: str) -> httpx.Response:
        form = {"grant_type": "refresh_token", "refresh_token": refresh_token}
        return await self.client.post("/api/oauth/cli/token", data=form)

    async def renew(self, lease: Lease) -> None:
        """Exchange the lease's refresh token for a new pair."""
        lease.child = good(await self.refresh(lease.child["refresh_token"]))

    def stop(self) -> None:
        """Tell the server to stop; `served` waits for it."""
        self.scope.cancel()

    async def second_login(self, connection_id: str) -> str:
        """Another login of the same account; returns its token."""
        return await self.change(
            lambda unit: open_parent(unit, LOCAL_ACCOUNT, connection_id, "laptop")
        )

    async def change(self, work: Callable[[Unit], T]) -> T:
        """Do something to the database that no call of the server does."""
        settings = Settings()

        def in_thread() -> T:
            database = Database(self.folder / "server.sqlite3", settings)
            try:
                return database.transact(
                    lambda sql: work(
                        Unit(sql, settings, self.clock, Presence(self.clock, 0.0))
                    ),
                    writes=True,
                )
            finally:
                database.close()

        return await trio.to_thread.run_sync(in_thread)

    async def wait_until_connected(self, name: str, *, is_connected: bool) -> None:
        with trio.fail_after(NET_S):
            while (await self.agents())[name]["connected"] is not is_connected:
                await trio.lowlevel.checkpoint()


@asynccontextmanager
async def served(
    folder: Path, settings: Settings, clock: FakeClock
) -> AsyncIterator[Served]:
    """A server in this process, with a login; stopped in order at the end."""
    database = folder / "server.sqlite3"
    socket_path = folder / "server.sock"
    token = bootstrap_parent(database, clock)
    transport = httpx.AsyncHTTPTransport(uds=str(socket_path))
    async with httpx.AsyncClient(
        transport=transport, base_url="http://bridge", timeout=NET_S
    ) as client:
        server = Served(folder, clock, token, client)
        async with trio.open_nursery() as nursery:
            await nursery.start(_run, socket_path, database, settings, clock, server)
            yield server
            server.stop()


async def _run(
    socket_path: Path,
    database: Path,
    settings: Settings,
    clock: Clock,
    server: Served,
    task_status: trio.TaskStatus[None],
) -> None:
    log = open_log(server.log, clock)
    listener = open_listener(socket_path)
    with server.scope:
        await serve(listener, database, settings, clock, log, task_status=task_status)
    socket_path.unlink()
