"""Any MCP server as a world, found as ``mcp:COMMAND`` or ``mcp:URL``."""

import shlex
from collections.abc import Sequence

from corral.errors import UsageError
from corral.worlds.family import Family
from corral.worlds.mcp.connection import Server
from corral.worlds.mcp.env import McpCall, McpEnvironment, McpTools, Score
from corral.worlds.needs import Needs
from corral.worlds.policy import any_caller
from corral.worlds.tasks import draw_in_passes
from corral.worlds.world import Row, World

__all__ = ["FAMILY", "McpCall", "McpEnvironment", "McpTools", "Server", "server_world"]

PROMPT = "Use the tools.\n\n"

NEEDS = Needs(requirements=("mcp==1.30.0",), modules=("mcp",), size_mb=100, shared_as="mcp")


def server_world(
    server: Server | str,
    *,
    rows: Sequence[Row] = ({"prompt": PROMPT},),
    score: Score | None = None,
    is_shared: bool = False,
) -> World:
    """The world of a server's tools.

    Args:
        server: A command line or a URL, or a record that says more.
        rows: What to play; a server itself has no tasks. The same ones are played in evaluations.
        score: From the environment after its episode to its reward. Without it there is none,
            which is right where reward functions score. Won: a reward of at least 1.
        is_shared: Whether one server, or session, serves all environments of the process; for
            servers that remember nothing.

    Raises:
        UsageError: That names no server.
    """
    found = _server(server) if isinstance(server, str) else server
    return World(
        name=f"mcp:{found}",
        summary=f"The tools of the MCP server {found}.",
        factory=McpTools(found, score=score, is_shared=is_shared),
        tasks=lambda seed, count: draw_in_passes(rows, seed=seed, count=count),
        evaluation_tasks=lambda count: [rows[place % len(rows)] for place in range(count)],
        policies={"random": any_caller},
        needs=NEEDS,
    )


def _server(text: str) -> Server:
    if text.startswith(("http://", "https://")):
        return Server(url=text)
    try:
        return Server(command=tuple(shlex.split(text)))
    except ValueError as error:
        raise UsageError(f"{text!r} is no command line: {error}.") from error


FAMILY = Family(
    name="mcp",
    summary="The tools of any MCP server, by its command line or URL.",
    world=server_world,
    needs=NEEDS,
)
