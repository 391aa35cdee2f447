"""A fake of Google's generateContent API, enough for a real Gemini CLI offline.

Owns that dialect alone; steering and log are in model_server. Promises a stream
that Gemini CLI 0.61 accepts, and that its own requests (a summary of an earlier
session, the check who speaks next) never use up a queued step.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from tests.fakes.model_server import (
    Exchange,
    ModelRequest,
    ModelServer,
    Step,
    serve_alone,
)

_STREAM = ":streamGenerateContent"
_USAGE = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}


class GeminiModel(ModelServer):
    """The API on loopback; give `url` as GOOGLE_GEMINI_BASE_URL."""

    def read(self, path: str, body: dict[str, Any]) -> ModelRequest:
        """See ModelServer; the API carries no session, so `session_id` is empty."""
        fresh = _new_parts(body)
        return ModelRequest(
            number=0,
            at_s=0,
            kind=_kind(path, body),
            path=path,
            new_text="\n".join(part["text"] for part in fresh if "text" in part),
            tool_results=tuple(_results(fresh)),
            tool_names=tuple(_tool_names(body)),
            body=body,
        )

    def write(self, exchange: Exchange, request: ModelRequest, step: Step) -> None:
        """See ModelServer."""
        if step.error:
            error = {"code": step.error, "message": "fake error", "status": "FAKE"}
            exchange.send_json(step.error, {"error": error})
            return
        answer = _answer(request, step)
        if _STREAM not in request.path:
            exchange.send_json(200, answer)
            return
        exchange.start_stream()
        exchange.wfile.write(b"data: " + msgspec.json.encode(answer) + b"\r\n\r\n")
        exchange.wfile.flush()


def _kind(path: str, body: dict[str, Any]) -> str:
    """A turn is what is streamed with tools; all else is the program's own."""
    if "GenerateContent" not in path and ":generateContent" not in path:
        return "other"
    return "turn" if _STREAM in path and body.get("tools") else "side"


def _new_parts(body: dict[str, Any]) -> list[dict[str, Any]]:
    fresh: list[dict[str, Any]] = []
    for content in reversed(body.get("contents") or []):
        if content.get("role") == "model":
            break
        fresh = [*content.get("parts", ()), *fresh]
    return fresh


def _results(parts: list[dict[str, Any]]) -> Iterator[str]:
    for part in parts:
        response = (part.get("functionResponse") or {}).get("response")
        if isinstance(response, dict):
            yield "\n".join(_strings(response))


def _strings(value: object) -> Iterator[str]:
    """Every text in a result, however the program laid it out."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for each in value:
            yield from _strings(each)
    elif isinstance(value, dict):
        yield from _strings(list(value.values()))


def _tool_names(body: dict[str, Any]) -> Iterator[str]:
    for tool in body.get("tools") or ():
        for declared in tool.get("functionDeclarations") or ():
            yield declared["name"]


def _answer(request: ModelRequest, step: Step) -> dict[str, Any]:
    parts: list[dict[str, Any]] = []
    if step.say or not step.tool:
        parts.append({"text": step.say or f"ok {request.number}"})
    if step.tool:
        called = {"id": f"call_{request.number}", "name": step.tool}
        parts.append({"functionCall": {**called, "args": step.arguments}})
    candidate = {
        "content": {"role": "model", "parts": parts},
        "finishReason": "STOP",
        "index": 0,
    }
    return {
        "candidates": [candidate],
        "usageMetadata": _USAGE,
        "modelVersion": "fake-model",
    }


if __name__ == "__main__":
    serve_alone(GeminiModel)
