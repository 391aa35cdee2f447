"""A fake of the chat completions API, which many agents' programs speak.

Owns that dialect alone; steering and log are in model_server. Promises whole and
streamed replies that Pi 1.6 and opencode 1.18 accept, and that requests without
tools (titles, summaries) never use up a queued step.
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


class ChatCompletionsModel(ModelServer):
    """Chat completions on loopback; give `url + "/v1"` as a base address.

    The protocol names no session, so `session_id` is empty: tell the chats apart
    by what is in them.
    """

    def read(self, path: str, body: dict[str, Any]) -> ModelRequest:
        """See ModelServer: a request that offers tools is a turn."""
        fresh = _new_messages(body)
        results = (message for message in fresh if message.get("role") == "tool")
        texts = (message for message in fresh if message.get("role") != "tool")
        return ModelRequest(
            number=0,
            at_s=0,
            kind=_kind(path, body),
            path=path,
            new_text="\n".join(text_of(message) for message in texts),
            tool_results=tuple(text_of(message) for message in results),
            tool_names=tuple(
                str((tool.get("function") or {}).get("name") or "")
                for tool in body.get("tools") or ()
            ),
            body=body,
        )

    def write(self, exchange: Exchange, request: ModelRequest, step: Step) -> None:
        """See ModelServer."""
        if step.error:
            exchange.send_json(step.error, {"error": {"message": "fake error"}})
        elif request.body.get("stream"):
            _stream(exchange, request, step)
        else:
            exchange.send_json(200, _whole(request, step))


def text_of(message: dict[str, Any]) -> str:
    """A message's text, whether it is one string or parts."""
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content if "text" in part)


_USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


def _kind(path: str, body: dict[str, Any]) -> str:
    if not path.partition("?")[0].endswith("/chat/completions"):
        return "other"
    return "turn" if body.get("tools") else "side"


def _new_messages(body: dict[str, Any]) -> list[dict[str, Any]]:
    fresh: list[dict[str, Any]] = []
    for message in reversed(body.get("messages") or []):
        if message.get("role") == "assistant":
            break
        fresh.insert(0, message)
    return fresh


def _head(request: ModelRequest, kind: str) -> dict[str, Any]:
    model = request.body.get("model") or "fake"
    head = {"id": f"chat-{request.number}", "object": kind, "model": model}
    return {**head, "created": 1}


def _said(request: ModelRequest, step: Step) -> dict[str, Any]:
    said: dict[str, Any] = {"role": "assistant"}
    if step.say or not step.tool:
        said["content"] = step.say or f"ok {request.number}"
    if step.tool:
        written = msgspec.json.encode(step.arguments).decode()
        call = {"index": 0, "id": f"call_{request.number}", "type": "function"}
        call["function"] = {"name": step.tool, "arguments": written}
        said["tool_calls"] = [call]
    return said


def _choice(step: Step, **said: Any) -> dict[str, Any]:
    return {"index": 0, **said, "finish_reason": "tool_calls" if step.tool else "stop"}


def _whole(request: ModelRequest, step: Step) -> dict[str, Any]:
    choice = _choice(step, message=_said(request, step))
    head = _head(request, "chat.completion")
    return {**head, "choices": [choice], "usage": _USAGE}


def _stream(exchange: Exchange, request: ModelRequest, step: Step) -> None:
    head = _head(request, "chat.completion.chunk")
    first = {"index": 0, "delta": _said(request, step), "finish_reason": None}
    last = _choice(step, delta={})
    exchange.start_stream()
    for chunk in (
        {**head, "choices": [first]},
        {**head, "choices": [last], "usage": _USAGE},
    ):
        exchange.wfile.write(b"data: " + msgspec.json.encode(chunk) + b"\n\n")
    exchange.wfile.write(b"data: [DONE]\n\n")
    exchange.wfile.flush()


if __name__ == "__main__":
    serve_alone(ChatCompletionsModel)
