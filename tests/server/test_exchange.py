"""Strict requests and one envelope: sizes, forms, unknown calls, bugs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress

import pytest
import trio
from sqlalchemy import update

from bridge.errors import StorageBroken, StorageFull, Unavailable
from bridge.server.exchange import as_problem, refuse
from bridge.server.limits import Settings
from bridge.server.problems import Problem
from bridge.server.schema import agents
from tests.fakes.message_server import BRIDGE, CALL, NET_S, Served, good, refusal


async def chunks(size: int, count: int) -> AsyncIterator[bytes]:
    for _ in range(count):
        yield b" " * size


def head(server: Served, path: str, length: int) -> bytes:
    return (
        f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n"
        f"Authorization: Bearer {server.token}\r\n\r\n"
    ).encode()


@pytest.mark.parametrize("settings", [Settings(body_bytes=1_000)])
async def test_a_body_over_the_limit_is_refused(
    server: Served, settings: Settings
) -> None:
    url = f"{BRIDGE}/attachments"

    announced = await server.client.post(
        url, headers=server.headers, content=b"x" * 1_001
    )
    chunked = await server.client.post(
        url, headers=server.headers, content=chunks(100, 11)
    )
    largest = await server.client.post(
        url, headers=server.headers, content=b" " * 1_000
    )

    assert refusal(announced, 413)["code"] == "too_large"
    assert refusal(chunked, 413)["code"] == "too_large"
    assert refusal(largest, 400)["code"] == "invalid_json"


async def test_a_client_that_pours_in_far_too_much_is_cut_off(server: Served) -> None:
    stream = await trio.open_unix_socket(str(server.folder / "server.sock"))
    await stream.send_all(head(server, f"{BRIDGE}/attachments", 10**9))

    with trio.fail_after(NET_S), suppress(trio.BrokenResourceError):
        for _ in range(1_000):
            await stream.send_all(b"x" * 1_000_000)

    await stream.aclose()
    assert good(await server.client.get(f"{BRIDGE}/hello", headers=server.headers))


@pytest.mark.parametrize("settings", [Settings(body_wait_s=0.02)])
async def test_a_body_that_never_comes_is_not_waited_for(
    server: Served, settings: Settings
) -> None:
    stream = await trio.open_unix_socket(str(server.folder / "server.sock"))
    await stream.send_all(head(server, f"{BRIDGE}/attachments", 10))

    answer = b""
    with trio.fail_after(NET_S):
        while chunk := await stream.receive_some():
            answer += chunk
    await stream.aclose()

    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b'"too_slow"' in answer


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", "invalid_json"),
        (b"\xff", "invalid_json"),
        (b'{"provider":"p","session_id":"s","host_id":"h"} x', "invalid_json"),
        (b'{"name":' + b"[" * 100_000, "invalid_arguments"),
        (b"[]", "invalid_arguments"),
        (b"{}", "invalid_arguments"),
        (b'{"provider":1,"session_id":"s","host_id":"h"}', "invalid_arguments"),
    ],
)
async def test_a_body_of_the_wrong_form_is_refused(
    server: Served, body: bytes, code: str
) -> None:
    answer = await server.client.post(
        f"{BRIDGE}/attachments", headers=server.headers, content=body
    )

    assert refusal(answer, 400)["code"] == code


async def test_a_deeply_nested_argument_is_refused(server: Served) -> None:
    answer = await server.client.post(
        CALL,
        headers=server.headers,
        content=b'{"name":"messages","arguments":' + b"[" * 100_000,
    )

    assert refusal(answer, 400)["code"] in {"invalid_json", "invalid_arguments"}


async def test_a_repeated_query_parameter_is_refused(server: Served) -> None:
    bob = await server.attach("bob")

    answer = await server.client.get(
        f"{bob.path}/read?limit=1&limit=2", headers=bob.headers
    )

    assert refusal(answer, 400)["code"] == "invalid_arguments"


@pytest.mark.parametrize("path", ["/", "/api", f"{BRIDGE}/", f"{BRIDGE}/hello/"])
async def test_an_unknown_address_is_answered_in_the_envelope(
    server: Served, path: str
) -> None:
    assert refusal(await server.client.get(path), 404)["code"] == "no_route"


async def test_another_method_is_answered_in_the_envelope(server: Served) -> None:
    bob = await server.attach("bob")

    deleted = await server.client.delete(f"{BRIDGE}/hello")
    head = await server.client.head(f"{bob.path}/stream", headers=bob.headers)

    assert refusal(deleted, 405)["code"] == "method_not_allowed"
    assert head.status_code == 405


async def test_a_bug_is_answered_500_and_named_without_its_request(
    server: Served,
) -> None:
    alice, _ = await server.attach("alice"), await server.attach("bob")
    good(await alice.send("agent:bob", "hello", "one"))
    # A number that would be given twice: the database refuses, no call expects it.
    await server.change(
        lambda unit: unit.run(update(agents).values(last_sequence=500_000_000))
    )

    answer = await alice.send("agent:bob", "very secret text", "two")
    other = await server.client.get(f"{BRIDGE}/hello", headers=server.headers)

    assert refusal(answer, 500)["code"] == "internal"
    assert other.status_code == 200
    assert "call_failed" in server.log.getvalue()
    assert "very secret text" not in server.log.getvalue()


def test_an_expected_error_has_its_status() -> None:
    problem = Problem(409, "x", "What.", "Do.", extras={"state": "held"})

    shown = refuse(problem)

    assert as_problem(problem) is problem
    assert shown.status_code == 409
    assert shown.body == b'{"error":{"code":"x","message":"What. Do.","state":"held"}}'


@pytest.mark.parametrize(
    ("error", "retry_after"),
    [
        (StorageFull("storage_full", "No room."), "60"),
        (StorageBroken("storage_broken", "Broken."), "1"),
        (Unavailable("storage_busy", "Busy.", retry_after_s=2.5), "3"),
    ],
)
def test_a_storage_error_is_answered_503(error: Exception, retry_after: str) -> None:
    problem = as_problem(error)
    assert problem is not None

    shown = refuse(problem)

    assert shown.status_code == 503
    assert shown.headers["retry-after"] == retry_after


def test_a_bug_is_no_problem() -> None:
    assert as_problem(KeyError("x")) is None
