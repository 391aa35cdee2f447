"""The fake models: steering and log, as a plain HTTP client sees them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio

from tests.fakes.anthropic_model import AnthropicModel
from tests.fakes.chat_completions_model import ChatCompletionsModel
from tests.fakes.model_server import Step, directed_step
from tests.fakes.openai_model import OpenAIModel
from tests.real_clients.rig.waiting import wait_until


@pytest.fixture
def model(tmp_path: Path) -> Iterator[AnthropicModel]:
    with AnthropicModel(log=tmp_path / "log.jsonl") as model:
        yield model


async def ask(model: AnthropicModel, *messages: dict[str, Any]) -> Any:
    """One request of kind turn; the reply's content blocks, or its status."""
    body = {"tools": [{"name": "Bash"}], "system": "x", "messages": list(messages)}
    async with httpx.AsyncClient(trust_env=False) as client:
        reply = await client.post(f"{model.url}/v1/messages", json=body)
    return reply.json()["content"] if reply.is_success else reply.status_code


def said(text: str, role: str = "user") -> dict[str, Any]:
    return {"role": role, "content": text}


async def test_new_text_is_what_came_after_the_last_assistant_message(
    model: AnthropicModel,
) -> None:
    await ask(model, said("old"), said("ok", "assistant"), said("new"), said("more"))

    (request,) = model.turns()
    assert request.new_text == "new\nmore"


async def test_a_queued_step_waits_for_the_text_it_is_meant_for(
    model: AnthropicModel,
) -> None:
    model.enqueue(Step(say="found", when="needle"))

    plain = await ask(model, said("hay"))
    found = await ask(model, said("a needle"))
    again = await ask(model, said("a needle"))

    texts = [blocks[0]["text"] for blocks in (plain, found, again)]
    assert texts == ["ok 1", "found", "ok 3"]


async def test_a_callable_makes_its_step_from_the_request(
    model: AnthropicModel,
) -> None:
    model.enqueue(lambda request: Step(say=request.new_text.upper()))

    assert (await ask(model, said("loud")))[0]["text"] == "LOUD"


async def test_a_held_reply_is_in_the_log_before_it_is_given(
    model: AnthropicModel,
) -> None:
    model.enqueue(Step(hold="gate", say="late"))
    replies: list[Any] = []

    async def wait_for_reply() -> None:
        replies.append(await ask(model, said("hello")))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait_for_reply)
        await wait_until(model.turns, "a logged request")
        assert replies == []
        model.release("gate")
    assert replies[0][0]["text"] == "late"


async def test_another_process_can_steer_and_read_the_log(
    model: AnthropicModel, tmp_path: Path
) -> None:
    async with httpx.AsyncClient(trust_env=False, base_url=model.url) as client:
        await client.post("/fake/enqueue", json=[{"error": 529}])
        refused = await ask(model, said("hello"))
        log = (await client.get("/fake/log")).json()

    written = (tmp_path / "log.jsonl").read_text()
    assert refused == 529
    assert log[0]["new_text"] == json.loads(written)["new_text"] == "hello"


@pytest.mark.parametrize(
    ("text", "step"),
    [
        ("nothing special", None),
        ("FAKE_SAY two words\nrest", Step(say="two words")),
        ("FAKE_DELAY 0.5", Step(delay_s=0.5)),
        ("FAKE_ERROR 400", Step(error=400)),
        ("FAKE_TOOL note", Step(tool="note")),
        (
            'a FAKE_TOOL note {"a": {"b": 1}} .',
            Step(tool="note", arguments={"a": {"b": 1}}),
        ),
        ("FAKE_DELAY 1\nFAKE_SAY both", Step(delay_s=1.0, say="both")),
    ],
)
def test_directives_in_the_text_choose_the_step(text: str, step: Step | None) -> None:
    assert directed_step(text) == step


async def test_the_openai_dialect_finds_a_tools_namespace_and_streams_a_call() -> None:
    told = {"request_kind": "turn", "thread_id": "t-1", "thread_source": "user"}
    space = {"type": "namespace", "name": "mcp__x", "tools": [{"name": "note"}]}
    message = {"type": "message", "role": "user", "content": [{"text": "hello"}]}
    body = {
        "client_metadata": {"x-codex-turn-metadata": json.dumps(told)},
        "tools": [space],
        "input": [message],
    }
    with OpenAIModel() as model:
        model.enqueue(Step(tool="note"))
        async with httpx.AsyncClient(trust_env=False) as client:
            reply = await client.post(f"{model.url}/v1/responses", json=body)

    (request,) = model.turns("t-1", containing="hello")
    assert request.tool_names == ("note",)
    assert '"namespace":"mcp__x"' in reply.text
    assert reply.text.count("event: response.completed") == 1


async def test_chat_completions_are_streamed_with_their_tool_call_and_logged() -> None:
    body = {
        "stream": True,
        "tools": [{"type": "function", "function": {"name": "bash"}}],
        "messages": [
            said("old"),
            said("ok", "assistant"),
            {"role": "tool", "content": "done"},
            {"role": "user", "content": [{"type": "text", "text": "hello"}]},
        ],
    }
    with ChatCompletionsModel() as model:
        model.enqueue(Step(tool="bash", arguments={"command": "true"}))
        async with httpx.AsyncClient(trust_env=False, base_url=model.url) as client:
            reply = await client.post("/v1/chat/completions", json=body)
            title = {"messages": [said("hello")]}
            side = await client.post("/v1/chat/completions", json=title)

    (request,) = model.turns(containing="hello")
    assert (request.tool_names, request.tool_results) == (("bash",), ("done",))
    assert '"finish_reason":"tool_calls"' in reply.text
    assert reply.text.endswith("data: [DONE]\n\n")
    assert side.json()["choices"][0]["message"]["content"] == "side"
