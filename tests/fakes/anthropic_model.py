"""A fake of Anthropic's Messages API, enough for a real Claude Code to run offline.

Owns that dialect alone; steering and log are in model_server. Promises a stream
that Claude Code 2.1 accepts, and that its own side requests (titles) never use
up a queued step.
"""

from __future__ import annotations

from typing import Any

import msgspec

from tests.fakes.model_server import (
    Exchange,
    ModelRequest,
    ModelServer,
    Step,
    serve_alone,
)


class AnthropicModel(ModelServer):
    """The Messages API on loopback; give `url` as ANTHROPIC_BASE_URL."""

    def read(self, path: str, body: dict[str, Any]) -> ModelRequest:
        """See ModelServer: a request with tools and a system prompt is a turn."""
        blocks = _new_blocks(body)
        return ModelRequest(
            number=0,
            at_s=0,
            kind=_kind(path, body),
            path=path,
            session_id=_session_id(body),
            new_text="\n".join(
                block["text"] for block in blocks if block["type"] == "text"
            ),
            tool_results=tuple(
                _result_text(block)
                for block in blocks
                if block["type"] == "tool_result"
            ),
            tool_names=tuple(tool["name"] for tool in body.get("tools") or ()),
            body=body,
        )

    def write(self, exchange: Exchange, request: ModelRequest, step: Step) -> None:
        """See ModelServer."""
        if step.error:
            problem = {"type": "api_error", "message": "fake error"}
            exchange.send_json(step.error, {"type": "error", "error": problem})
            return
        message = _message(request, step)
        if request.body.get("stream"):
            _stream(exchange, message)
        else:
            exchange.send_json(200, message)


def _kind(path: str, body: dict[str, Any]) -> str:
    if path.partition("?")[0] != "/v1/messages":
        return "other"
    return "turn" if body.get("tools") and body.get("system") else "side"


def _blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message.get("content") or []
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return list(content)


def _new_blocks(body: dict[str, Any]) -> list[dict[str, Any]]:
    # Claude Code puts injected context into messages of role "system" that come
    # after the user's, so the role says nothing about what is new.
    blocks: list[dict[str, Any]] = []
    for message in reversed(body.get("messages") or []):
        if message.get("role") == "assistant":
            break
        blocks[:0] = _blocks(message)
    return blocks


def _result_text(block: dict[str, Any]) -> str:
    return "\n".join(part["text"] for part in _blocks(block) if part["type"] == "text")


def _session_id(body: dict[str, Any]) -> str:
    user_id = (body.get("metadata") or {}).get("user_id") or "{}"
    try:
        return str(msgspec.json.decode(user_id, type=dict[str, Any])["session_id"])
    except (msgspec.DecodeError, KeyError):
        return ""


def _message(request: ModelRequest, step: Step) -> dict[str, Any]:
    content: list[dict[str, Any]] = []
    if step.say or not step.tool:
        content.append({"type": "text", "text": step.say or f"ok {request.number}"})
    if step.tool:
        call_id = f"toolu_{request.number:020d}"
        call = {"type": "tool_use", "id": call_id, "name": step.tool}
        content.append({**call, "input": step.arguments})
    return {
        "id": f"msg_{request.number:020d}",
        "type": "message",
        "role": "assistant",
        "model": request.body.get("model") or "fake",
        "content": content,
        "stop_reason": "tool_use" if step.tool else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 5},
    }


def _stream(exchange: Exchange, message: dict[str, Any]) -> None:
    exchange.start_stream()
    opening = {**message, "content": [], "stop_reason": None}
    exchange.send_event("message_start", message=opening)
    for place, block in enumerate(message["content"]):
        opened, delta = _block_events(block)
        exchange.send_event("content_block_start", index=place, content_block=opened)
        exchange.send_event("content_block_delta", index=place, delta=delta)
        exchange.send_event("content_block_stop", index=place)
    ending = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    exchange.send_event("message_delta", delta=ending, usage={"output_tokens": 5})
    exchange.send_event("message_stop")


def _block_events(block: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    if block["type"] == "text":
        return {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
    written = msgspec.json.encode(block["input"]).decode()
    delta = {"type": "input_json_delta", "partial_json": written}
    return {**block, "input": {}}, delta


if __name__ == "__main__":
    serve_alone(AnthropicModel)
