"""A fake of OpenAI's Responses API, enough for a real Codex to run offline.

Owns that dialect alone; steering and log are in model_server. Promises a stream
that Codex 0.171 accepts, and that its title requests never use up a queued step.
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


class OpenAIModel(ModelServer):
    """The Responses API on loopback; give `url + "/v1"` as a provider's base_url."""

    def read(self, path: str, body: dict[str, Any]) -> ModelRequest:
        """See ModelServer; `session_id` is the thread, `source` its origin."""
        told = _turn_metadata(body)
        fresh = _new_inputs(body)
        return ModelRequest(
            number=0,
            at_s=0,
            kind=_kind(path, told),
            path=path,
            session_id=str(told.get("thread_id") or ""),
            source=str(told.get("thread_source") or ""),
            new_text="\n".join(_texts(fresh)),
            tool_results=tuple(_results(fresh)),
            tool_names=tuple(name for _, name in _tools(body)),
            body=body,
        )

    def write(self, exchange: Exchange, request: ModelRequest, step: Step) -> None:
        """See ModelServer."""
        if step.error:
            exchange.send_json(step.error, {"error": {"message": "fake error"}})
            return
        response = {
            "id": f"resp_{request.number}",
            "object": "response",
            "status": "in_progress",
            "model": "fake",
            "output": [],
        }
        output = _output(request, step)
        exchange.start_stream()
        exchange.send_event("response.created", response=response)
        for place, item in enumerate(output):
            for verb in ("added", "done"):
                kind = f"response.output_item.{verb}"
                exchange.send_event(kind, output_index=place, item=item)
        done = {**response, "status": "completed", "output": output, "usage": _USAGE}
        exchange.send_event("response.completed", response=done)


_USAGE = {
    "input_tokens": 10,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens": 5,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 15,
}


def _turn_metadata(body: dict[str, Any]) -> dict[str, Any]:
    written = (body.get("client_metadata") or {}).get("x-codex-turn-metadata") or "{}"
    return msgspec.json.decode(written, type=dict[str, Any])


def _kind(path: str, told: dict[str, Any]) -> str:
    if not path.partition("?")[0].endswith("/responses"):
        return "other"
    if told.get("request_kind") != "turn":
        return "side"
    return "side" if told.get("thread_source") == "thread_title" else "turn"


def _new_inputs(body: dict[str, Any]) -> list[dict[str, Any]]:
    fresh: list[dict[str, Any]] = []
    for item in reversed(body.get("input") or []):
        called = item.get("type") in ("function_call", "reasoning")
        if called or item.get("role") == "assistant":
            break
        fresh.insert(0, item)
    return fresh


def _texts(items: list[dict[str, Any]]) -> Iterator[str]:
    for item in items:
        if item.get("type") == "message":
            yield from (part.get("text", "") for part in item["content"])


def _results(items: list[dict[str, Any]]) -> Iterator[str]:
    for item in items:
        output = item.get("output")
        if isinstance(output, str):
            yield output
        elif isinstance(output, list):
            yield "\n".join(part.get("text", "") for part in output)


def _tools(body: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Pairs of namespace (or "") and the tool's name in it."""
    for tool in body.get("tools") or ():
        if tool.get("type") == "namespace":
            for inner in tool.get("tools") or ():
                yield tool["name"], inner["name"]
        elif tool.get("name"):
            yield "", tool["name"]


def _namespace(request: ModelRequest, step: Step) -> str:
    offered = _tools(request.body)
    return step.namespace or next(
        (space for space, name in offered if name == step.tool), ""
    )


def _output(request: ModelRequest, step: Step) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    number = request.number
    if step.say or not step.tool:
        text = {"type": "output_text", "text": step.say or f"ok {number}"}
        said = {"type": "message", "id": f"msg_{number}", "role": "assistant"}
        content = [{**text, "annotations": []}]
        items.append({**said, "status": "completed", "content": content})
    if step.tool:
        call: dict[str, Any] = {
            "type": "function_call",
            "id": f"fc_{number}",
            "call_id": f"call_{number}",
            "name": step.tool,
            "arguments": msgspec.json.encode(step.arguments).decode(),
            "status": "completed",
        }
        space = _namespace(request, step)
        items.append({**call, "namespace": space} if space else call)
    return items


if __name__ == "__main__":
    serve_alone(OpenAIModel)
