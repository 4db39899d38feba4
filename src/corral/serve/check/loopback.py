"""Serves a world on a free loopback port for as long as it is examined."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from corral.errors import InfrastructureFault, UsageError
from corral.serve.ports import free_port
from corral.serve.running import ServeOptions, app_of, server_settings
from corral.serve.security_rules import SecurityRules

_HOST = "127.0.0.1"
SESSIONS = 4
"""Few, so that the last slot is soon taken."""
_QUEUE_TIMEOUT_S = 1.0
_READY_WITHIN_S = 30.0


@contextmanager
def served_on_loopback(env: str, *, mode: str | None = None) -> Iterator[str]:
    """The URL of a server for ``env``: a built-in name, ``module:Class`` or ``path.py:Class``."""
    import uvicorn

    options = ServeOptions(
        env=env,
        host=_HOST,
        port=free_port(_HOST),
        max_sessions=SESSIONS,
        queue_timeout_s=_QUEUE_TIMEOUT_S,
        mode=mode,
    )
    config = uvicorn.Config(_app(options), host=_HOST, port=options.port, **server_settings())
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, name="corral-check-server", daemon=True)
    thread.start()
    try:
        deadline = time.monotonic() + _READY_WITHIN_S
        while not server.started:
            if not thread.is_alive() or time.monotonic() > deadline:
                raise InfrastructureFault(f"{env} could not be served on port {options.port}.")
            time.sleep(0.01)
        yield f"http://{_HOST}:{options.port}"
    finally:
        server.should_exit = True
        thread.join()


def _app(options: ServeOptions) -> Any:
    try:
        return app_of(options, SecurityRules())
    except UsageError:
        # An environment that bears one session only says so; what else is wrong comes again.
        return app_of(replace(options, max_sessions=None), SecurityRules())
