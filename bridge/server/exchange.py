"""One HTTP exchange: strict reading of a request, one envelope for every answer.

Owns decoding and encoding. Promises that a body is read no further than its
limit and its time, that unknown keys and wrong types are refused, and that
every error leaves as the error envelope (or, for OAuth, its flat form).
"""

from __future__ import annotations

import math
from contextlib import aclosing
from typing import TypeVar
from urllib.parse import parse_qsl

import msgspec
import trio
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from bridge.errors import StorageBroken, StorageFull, Unavailable
from bridge.server.limits import Settings
from bridge.server.problems import Problem, invalid_arguments

T = TypeVar("T")

_JSON = "application/json"
_FULL_RETRY_S = 60.0


def bearer(request: Request) -> str:
    """The access token of the request; 401 when there is none."""
    kind, _, token = request.headers.get("authorization", "").partition(" ")
    if kind.lower() != "bearer" or not token.strip():
        raise Problem(
            401, "unauthorized", "This call needs a bearer token.", "Sign in first."
        )
    return token.strip()


async def read_body(request: Request, settings: Settings) -> bytes:
    """The whole body; 413 past the limit, 408 when it does not come in time."""
    body = bytearray()
    with trio.move_on_after(settings.body_wait_s) as waiting:
        _refuse_larger(_announced(request), settings.body_bytes)
        async with aclosing(request.stream()) as chunks:
            async for chunk in chunks:
                body += chunk
                _refuse_larger(len(body), settings.body_bytes)
    if waiting.cancelled_caught:
        raise Problem(408, "too_slow", "The request's body did not come in time.")
    return bytes(body)


def _announced(request: Request) -> int:
    text = request.headers.get("content-length", "0")
    return int(text) if text.isascii() and text.isdigit() else 0


def _refuse_larger(size: int, limit: int) -> None:
    if size > limit:
        raise Problem(413, "too_large", f"A request has at most {limit} bytes.")


async def read_json(request: Request, settings: Settings, kind: type[T]) -> T:
    """The body as this Struct; 400 when it is not JSON or not of its form.

    An empty body stands for `{}`.
    """
    body = await read_body(request, settings)
    try:
        return msgspec.json.decode(body or b"{}", type=kind)
    except msgspec.ValidationError as error:
        raise invalid_arguments(f"{error}.") from error
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise Problem(400, "invalid_json", "The body is not valid JSON.") from error


async def read_form(request: Request, settings: Settings) -> dict[str, str]:
    """A form-encoded body; a repeated key keeps its last value."""
    body = await read_body(request, settings)
    return dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))


def read_query(request: Request, kind: type[T]) -> T:
    """The query as this Struct, numbers converted; 400 otherwise."""
    pairs = request.query_params.multi_items()
    if len(dict(pairs)) != len(pairs):
        raise invalid_arguments("A query parameter is given twice.")
    try:
        return msgspec.convert(dict(pairs), kind, strict=False)
    except msgspec.ValidationError as error:
        raise invalid_arguments(f"{error}.") from error


def require_within(what: str, value: float, low: float, high: float) -> None:
    """400 when a number (or a count) is outside its bounds, both included."""
    if not low <= value <= high:
        raise invalid_arguments(f"{what} is from {low:g} to {high:g}.")


def answer(result: object, status: int = 200) -> Response:
    """The result as JSON."""
    return Response(msgspec.json.encode(result), status, media_type=_JSON)


def oauth_error(code: str) -> Response:
    """The flat form that OAuth endpoints use."""
    return answer({"error": code}, 400)


def refuse(problem: Problem) -> Response:
    """The envelope, with Retry-After where it applies."""
    headers = {}
    if problem.retry_after_s is not None:
        headers["retry-after"] = str(max(1, math.ceil(problem.retry_after_s)))
    return Response(
        problem.envelope(), problem.http_status, headers=headers, media_type=_JSON
    )


def as_problem(error: Exception) -> Problem | None:
    """The answer to an expected error; None for a bug of ours."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, Unavailable):
        return _unavailable(error.code, error.sentence(), error.retry_after_s or 1.0)
    if isinstance(error, StorageFull):
        return _unavailable(error.code, error.sentence(), _FULL_RETRY_S)
    if isinstance(error, StorageBroken):
        return _unavailable(error.code, error.sentence(), 1.0)
    if isinstance(error, ClientDisconnect):
        return Problem(400, "client_gone", "The client went away.")
    return None


def _unavailable(code: str, message: str, retry_after_s: float) -> Problem:
    return Problem(503, code, message, retry_after_s=retry_after_s)
