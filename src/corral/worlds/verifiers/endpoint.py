"""The model that verifiers is told of: an endpoint on loopback, behind which episodes wait."""

# pyright: reportMissingImports=false

import time
from typing import Any

from aiohttp import web

from corral.worlds.verifiers.episode import Episode, Message
from corral.worlds.verifiers.harness import SAYS_NO_MORE

_LARGEST_REQUEST = 256 * 2**20  # bytes; conversations with pictures are long
_SESSION = "X-Session-ID"
"""The header with the id of the trace that a request belongs to."""


class ModelEndpoint:
    """Chat completions over HTTP, each answered by the one who watches its trace."""

    def __init__(self) -> None:
        self.watchers: dict[str, Episode] = {}
        """Who answers, by the id of the trace."""
        self.url = ""
        app = web.Application(client_max_size=_LARGEST_REQUEST)
        app.router.add_post("/v1/chat/completions", self._answer)
        self._runner = web.AppRunner(app, access_log=None)

    async def open(self) -> None:
        """Listen at a free port of this machine."""
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}/v1"

    async def close(self) -> None:
        """Listen no more."""
        await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.Response:
        watcher = self.watchers.get(request.headers.get(_SESSION, ""))
        message = None if watcher is None else await watcher.ask(await request.json())
        if message is None:
            error = {"error": {"message": "The model says no more: its episode is over."}}
            return web.json_response(error, status=SAYS_NO_MORE)
        return web.json_response(_completion(message))


def _completion(message: Message) -> dict[str, Any]:
    why = "tool_calls" if message.get("tool_calls") else "stop"
    return {
        "id": "turn",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": "corral",
        "choices": [{"index": 0, "finish_reason": why, "message": message}],
    }
