"""Run a server process: uvicorn, set up for many small frames."""

import gc
import json
import os
import resource
from dataclasses import asdict, dataclass
from typing import Any

from corral.errors import UsageError
from corral.serve.security_rules import (
    PUBLIC_VARIABLE,
    TOKEN_VARIABLE,
    SecurityRules,
    check_bind,
    rules_from_environment,
)
from corral.serve.settings import ServeSettings

MAX_FRAME_BYTES = 16 * 1024 * 1024
"""Of what clients send; OpenEnv servers take as much."""
_OPTIONS_VARIABLE = "CORRAL_SERVE_OPTIONS"
_GRACE_S = 5


@dataclass(frozen=True, kw_only=True)
class ServeOptions:
    """What ``corral serve`` was asked for, so that each worker process can make its own app."""

    env: str
    """Built-in name, ``module:Class`` or ``path.py:Class``."""
    host: str = "127.0.0.1"
    port: int = 8000
    max_sessions: int | None = None
    """Of all workers together; None for what the environment bears."""
    workers: int = 1
    step_timeout_s: float = ServeSettings.step_timeout_s
    queue_timeout_s: float = ServeSettings.queue_timeout_s
    idle_timeout_s: float = ServeSettings.idle_timeout_s
    lease_s: float = ServeSettings.lease_s
    mode: str | None = None
    is_debug: bool = False


def app_of(options: ServeOptions, rules: SecurityRules) -> Any:
    """The application of one worker process."""
    from corral.serve.app import create_app
    from corral.serve.finding import find_served

    served = find_served(options.env)
    share = None if options.max_sessions is None else -(-options.max_sessions // options.workers)
    return create_app(
        served.factory,
        env_name=served.name,
        max_concurrent_envs=share,
        tasks=served.tasks,
        mode=options.mode,
        step_timeout_s=options.step_timeout_s,
        queue_timeout_s=options.queue_timeout_s,
        idle_timeout_s=options.idle_timeout_s,
        lease_s=options.lease_s,
        is_debug=options.is_debug,
        security=rules,
    )


def serve(options: ServeOptions, rules: SecurityRules) -> None:
    """Serve until the process is told to stop.

    Raises:
        UsageError: It may not be served so; nothing listens then.
    """
    import uvicorn

    check_bind(options.host, rules)  # again, for those who come without the command
    if options.workers < 1:
        raise UsageError(f"workers={options.workers}: give 1 or more.")
    allow_many_sockets()
    app: Any = app_of(options, rules)
    if options.workers > 1:
        app = "corral.serve.running:worker_app"
        _hand_over(options, rules)
    leave_to_live()
    uvicorn.run(
        app,
        factory=options.workers > 1,
        host=options.host,
        port=options.port,
        workers=options.workers,
        **server_settings(),
    )


def server_settings() -> dict[str, Any]:
    """What uvicorn is told, beside where to listen.

    Frames are small and mostly unlike each other, so compressing them costs more than it saves.
    """
    from corral.serve.uvicorn_protocol import PromptHttpProtocol, QuickWebSocketProtocol

    return {
        "http": PromptHttpProtocol,
        "ws": QuickWebSocketProtocol,
        "ws_per_message_deflate": False,
        "ws_max_size": MAX_FRAME_BYTES,
        "log_level": "warning",
        "timeout_graceful_shutdown": _GRACE_S,
        "timeout_keep_alive": 75,  # longer than clients keep idle connections
    }


def worker_app() -> Any:
    """The application of a worker, from what its parent left in the environment."""
    allow_many_sockets()
    options = ServeOptions(**json.loads(os.environ[_OPTIONS_VARIABLE]))
    app = app_of(options, rules_from_environment())
    leave_to_live()
    return app


def allow_many_sockets() -> None:
    """Raise the limit of open files as far as it goes: each session needs one or more."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def leave_to_live() -> None:
    """Keep the garbage collector from what is there to stay: looking through it takes 0.1 s."""
    gc.collect()
    gc.freeze()


def _hand_over(options: ServeOptions, rules: SecurityRules) -> None:
    # Through the environment: a token on a command line is seen by everybody on the machine.
    os.environ[_OPTIONS_VARIABLE] = json.dumps(asdict(options))
    os.environ[TOKEN_VARIABLE] = rules.token or ""
    os.environ[PUBLIC_VARIABLE] = "1" if rules.is_public_allowed else ""
