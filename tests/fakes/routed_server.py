"""A message server that answers by the last word of the path, in virtual time.

Whatever is not scripted is answered with an empty object, as a server would that
takes what it is told.
"""

from __future__ import annotations

from collections.abc import Callable

import httpx
import trio

from tests.fakes.scripted_server import Answer, ScriptedBytes, said

Script = Callable[[httpx.Request], "Answer | Exception"]
_TAKEN: dict[str, object] = {
    "progress": {"offered_through": 0},
    "receipts": {"recorded": []},
    "read": {"messages": [], "next_cursor": 0},
}


class RoutedServer(httpx.AsyncBaseTransport):
    """See the module; `asked` is each request's word, with when it came."""

    def __init__(self, **scripts: Script) -> None:
        self.scripts = scripts
        self.asked: list[tuple[str, float]] = []
        self.requests: list[httpx.Request] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await request.aread()
        await trio.lowlevel.checkpoint()
        word = request.url.path.rpartition("/")[2]
        self.asked.append((word, trio.current_time()))
        self.requests.append(request)
        script = self.scripts.get(word)
        answer = script(request) if script else said(_TAKEN.get(word, {}))
        if isinstance(answer, Exception):
            raise answer
        return httpx.Response(
            answer.status,
            headers=dict(answer.headers),
            stream=ScriptedBytes(answer.chunks),
        )

    def times(self, word: str = "stream") -> list[float]:
        """When this was asked for, in virtual seconds."""
        return [at for asked, at in self.asked if asked == word]
