"""Make an ASGI application that serves an environment."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel
from starlette.routing import Route, WebSocketRoute

from corral.serve.http import add_routes, add_task_routes
from corral.serve.kinds import kind_of
from corral.serve.mcp import McpDialect
from corral.serve.mcp_routes import McpHttpEndpoint, McpSocketEndpoint
from corral.serve.mcp_standard import StandardMcpServer
from corral.serve.security import SecurityMiddleware
from corral.serve.security_rules import SecurityRules
from corral.serve.sessions import Sessions
from corral.serve.settings import ServeSettings, choose_max_sessions, choose_mode
from corral.serve.tool_world import TaskSource
from corral.serve.ws import PlayEndpoint


def create_app(
    env: Callable[[], Any],
    action_cls: type[BaseModel] | None = None,
    observation_cls: type[BaseModel] | None = None,
    env_name: str | None = None,
    max_concurrent_envs: int | None = None,
    *,
    state_cls: type[BaseModel] | None = None,
    mode: str | None = None,
    tasks: TaskSource | None = None,
    queue_timeout_s: float = ServeSettings.queue_timeout_s,
    step_timeout_s: float = ServeSettings.step_timeout_s,
    idle_timeout_s: float = ServeSettings.idle_timeout_s,
    lease_s: float = ServeSettings.lease_s,
    is_debug: bool = False,
    security: SecurityRules | None = None,
) -> FastAPI:
    """An application that serves environments to OpenEnv clients, Corral clients and MCP clients.

    ::

        app = create_app(GuessNumber)                         # methods are tools
        app = create_app(Counter, Add, Total, max_concurrent_envs=8)   # OpenEnv-style

    Args:
        env: The class, or a function that makes environments. Each session gets its own.
        action_cls: OpenEnv-style only, as the next one: what ``step`` takes; by default what its
            signature says.
        observation_cls: What ``reset`` and ``step`` give.
        env_name: The name in the routes that list tasks; by default the class's.
        max_concurrent_envs: Sessions at a time; by default ``MAX_CONCURRENT_ENVS``, else 64 where
            the class allows several and 1 where it does not.
        state_cls: OpenEnv-style only: what ``state`` gives.
        mode: ``simulation``, or ``production`` without ``/reset``, ``/step`` and ``/state``; by
            default ``OPENENV_MODE``.
        tasks: ``(seed, count) -> rows``: what a class of tools plays on a reset without columns.
        queue_timeout_s: How long a client waits for a free slot.
        step_timeout_s: How long one call may take before it costs its session.
        idle_timeout_s: How long a session may do nothing; 0 for ever.
        lease_s: How long a session outlives a dropped connection of a Corral client.
        is_debug: Whether clients are told what the environment raised.
        security: Who is let in; by default what ``CORRAL_TOKEN`` and its like say.

    Raises:
        UsageError: The environment cannot be served so; the message names the remedy.
    """
    kind = kind_of(env, action_cls, observation_cls, state_cls, tasks=tasks, is_debug=is_debug)
    settings = ServeSettings(
        max_sessions=choose_max_sessions(
            max_concurrent_envs, name=kind.name, is_concurrent=kind.is_concurrent
        ),
        queue_timeout_s=queue_timeout_s,
        step_timeout_s=step_timeout_s,
        idle_timeout_s=idle_timeout_s,
        lease_s=lease_s,
        mode=choose_mode(mode),
        is_debug=is_debug,
    )
    sessions = Sessions(kind, settings)
    dialect = McpDialect(sessions)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        await sessions.end_all()

    app = FastAPI(title=kind.name, description=kind.description, version="1.0.0", lifespan=lifespan)
    app.state.sessions = sessions
    app.state.mcp = McpHttpEndpoint(dialect, StandardMcpServer(sessions))
    add_routes(app, sessions)
    app.router.routes.append(WebSocketRoute("/ws", PlayEndpoint(sessions, dialect)))
    app.router.routes.append(WebSocketRoute("/mcp", McpSocketEndpoint(sessions, dialect)))
    app.router.routes.append(Route("/mcp", app.state.mcp))
    add_task_routes(app, sessions, env_name or kind.name)
    app.add_middleware(SecurityMiddleware, rules=security)
    return app
