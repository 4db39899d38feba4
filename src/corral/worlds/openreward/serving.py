"""Serves environment classes of OpenReward with the server that the package brings."""

import os
import socket
from functools import cache
from importlib import import_module
from typing import Any

from corral.env.io_thread import IoThread
from corral.env.registry import resolve

_LOG_LEVEL = "OPENREWARD_LOG_LEVEL"


def openreward(name: str = "openreward") -> Any:
    """A module of the package, which else tells standard output of each request."""
    os.environ.setdefault(_LOG_LEVEL, "CRITICAL")  # what fails is told by who asked for it
    return import_module(name)


@cache
def served(spec: str) -> str:
    """The URL of a server of one environment class, which runs as long as this process.

    Args:
        spec: ``module:Class`` or ``path/to/file.py:Class``.

    Raises:
        UsageError: There is no such class.
    """
    app = openreward("openreward.environments").Server([resolve(spec)]).app
    listening = socket.create_server(("127.0.0.1", 0))
    uvicorn: Any = import_module("uvicorn")
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False))
    _loop_of(os.getpid()).start(lambda: server.serve(sockets=[listening]))
    return f"http://127.0.0.1:{listening.getsockname()[1]}"


@cache
def _loop_of(process_id: int) -> IoThread:
    """The event loop of all servers: apart from the clients', and one, as their streams want it."""
    return IoThread()
