"""The program that plays an agent of an environment: it asks the model, and makes its calls.

verifiers finds it among its own harnesses, by the id `HARNESS_ID`. It runs in this process; what it
asks goes through verifiers' recorder to the model endpoint, as what any harness asks.
"""

# pyright: reportMissingImports=false

import json
import sys
from contextlib import AsyncExitStack
from typing import Any

import httpx
import verifiers.v1 as vf
from verifiers.v1.dialects.chat import message_to_wire
from verifiers.v1.harnesses.utils.mcp import call_mcp, connect_mcp
from verifiers.v1.runtimes import ProgramResult

__all__ = ["SeatHarness"]

HARNESS_ID = "corral"
SAYS_NO_MORE = 410
"""The HTTP status of a model whose episode is over."""

_DONE = ProgramResult(0, "", "")

# Ids are names of modules: at the top, or beneath this package.
sys.modules[f"verifiers.v1.harnesses.{HARNESS_ID}"] = sys.modules[__name__]


class SeatHarness(vf.Harness[vf.HarnessConfig]):
    """Turns of a model, and the calls of tools that it asks for, until it says something."""

    APPENDS_SYSTEM_PROMPT = True
    SUPPORTS_MCP = True
    SUPPORTS_RESUME = True
    SUPPORTS_TOOL_INTERCEPTION = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(
        self,
        ctx: Any,
        trace: Any,
        runtime: Any,
        endpoint: str,
        secret: str,
        mcp_urls: dict[str, str],
        data: Any,
        tool_interception_url: str | None = None,
    ) -> Any:
        """Play until the model says something, or no more."""
        specs = {
            name: {"url": url, "timeout": self.config.tool_timeout}
            for name, url in mcp_urls.items()
        }
        messages = _opening(*self.resolve_prompt(data))
        async with AsyncExitStack() as stack:
            client = httpx.AsyncClient(
                headers={"Authorization": f"Bearer {secret}"}, timeout=None, trust_env=False
            )
            await stack.enter_async_context(client)
            tools, dispatch, servers = await connect_mcp({"mcpServers": specs}, stack)
            while True:
                body = {"model": ctx.model, "messages": messages}
                asked = await client.post(
                    f"{endpoint}/chat/completions", json=body | ({"tools": tools} if tools else {})
                )
                if asked.status_code == SAYS_NO_MORE:
                    return _DONE
                if asked.status_code != httpx.codes.OK:  # also where verifiers stops the run
                    return ProgramResult(1, "", asked.text)
                said = asked.json()["choices"][0]["message"]
                messages.append(said)
                if not said.get("tool_calls"):
                    return _DONE
                for call in said["tool_calls"]:
                    refused = await _refusal(client, tool_interception_url, call)
                    messages.append(refused or await _result(servers, dispatch, call))


def _opening(system: str | None, prompt: Any) -> list[dict[str, Any]]:
    messages = [{"role": "system", "content": system}] if system else []
    if isinstance(prompt, str):
        return [*messages, {"role": "user", "content": prompt}]
    return [*messages, *(message_to_wire(message) for message in prompt or ())]


async def _refusal(client: httpx.AsyncClient, url: str | None, call: Any) -> Any:
    """What the task puts in the place of a call's result; None where it may be made."""
    if url is None:
        return None
    function = call["function"]
    told = {
        "tool_call_id": call["id"],
        "name": function["name"],
        "arguments": json.loads(function["arguments"]),
    }
    answer = await client.post(url, json=told)
    decision = answer.raise_for_status().json()
    if decision["action"] == "stop":
        raise RuntimeError(decision["reason"])
    return decision["message"] if decision["action"] == "deny" else None


async def _result(servers: Any, dispatch: Any, call: Any) -> dict[str, Any]:
    name = call["function"]["name"]
    arguments = json.loads(call["function"]["arguments"])
    content = await call_mcp(servers, dispatch, name, arguments)
    return {"role": "tool", "tool_call_id": call["id"], "name": name, "content": content}
