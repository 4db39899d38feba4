"""The process in which one environment lives: ``python -m corral.env.own_process.child FD``.

It has one thread, in which the environment is made and called; what is asynchronous runs on an
event loop of that thread while it is called, and only then.
"""

import asyncio
import contextlib
import socket
import sys
from collections.abc import Mapping
from typing import Any, cast

from pydantic_core import to_jsonable_python

from corral.env.calls import CallFailure, ToolSet, attempt, tools_of
from corral.env.content import content_of, for_json, with_blocks
from corral.env.introspection import required_parameters
from corral.env.lifecycle import is_done, metrics
from corral.env.own_process.channel import Channel
from corral.env.own_reward import reward_parts
from corral.env.registry import resolve
from corral.env.threads import awaited, is_awaitable, run_without_loop
from corral.env.tools import Tool
from corral.errors import INFRASTRUCTURE_ERRORS, InfrastructureFault, text_of


def main() -> None:
    """Answer calls until the other end hangs up."""
    channel = Channel(socket.socket(fileno=int(sys.argv[1])))
    with contextlib.suppress(EOFError):
        told = channel.receive()
        sys.path += [place for place in told["path"] if place not in sys.path]
        _answer_calls(channel, told["environment"])


def _answer_calls(channel: Channel, spec: str) -> None:
    home: Home | None = None
    while True:
        asked = channel.receive()
        try:
            home = home or Home(spec)  # here, so that whoever asks is told why it failed
            answer = home.answer(asked)
        except InfrastructureFault as fault:
            answer = {"infrastructure": text_of(fault)}
        except INFRASTRUCTURE_ERRORS as error:
            what = f"{spec}.{asked['call']}: {type(error).__name__}"
            answer = {"infrastructure": f"{what}: {text_of(error)}"}
        except Exception as error:  # noqa: BLE001 - whoever asked is told
            answer = {"raised": [type(error).__name__, text_of(error)]}
        channel.send(answer)


class Home:
    """The environment and what it is asked."""

    def __init__(self, spec: str) -> None:
        self._instance: Any = resolve(spec)()
        self._tools: ToolSet = tools_of((), cast("type[Any]", type(self._instance)))
        self._loop = asyncio.new_event_loop()

    def answer(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """What came of a call, and what may be read of the environment after it."""
        name, arguments = asked["call"], asked["arguments"]
        if name == "close" and not self._has_close():
            came: dict[str, Any] = {"value": None}
        elif name in ("reset", "get_reward", "close"):
            value = self._settle(getattr(self._instance, name)(**arguments))
            came = {"value": for_json(with_blocks(value))}
        else:
            came = run_without_loop(self._tool(name, arguments))
        return to_jsonable_python({**came, **self._shown()})

    def _shown(self) -> dict[str, Any]:
        shown = {
            "done": is_done(self._instance),
            "metrics": metrics(self._instance),
            "reward_parts": reward_parts(self._instance),
        }
        won = getattr(self._instance, "won", None)
        return {**shown, "won": won} if isinstance(won, bool) else shown

    async def _tool(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        # Checked again: the other end has checked, but sends what JSON has.
        came = await attempt(self._tools, name, arguments, self._run)
        return {"failed": came.message} if isinstance(came, CallFailure) else {"value": came}

    async def _run(self, tool: Tool, arguments: Mapping[str, Any]) -> Any:
        value = self._settle(getattr(self._instance, tool.function_name)(**arguments))
        return for_json(content_of(value))

    def _settle(self, value: Any) -> Any:
        # Synchronous code finds no running loop, which some of it (Playwright) does not bear.
        return self._loop.run_until_complete(awaited(value)) if is_awaitable(value) else value

    def _has_close(self) -> bool:
        close = getattr(self._instance, "close", None)
        return callable(close) and not required_parameters(close)


if __name__ == "__main__":
    main()
