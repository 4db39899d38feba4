"""The server of a hosted world: started when it is first wanted, gone when this process is."""

import logging
import os
import secrets
import threading
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

from corral.env.io_thread import io_thread
from corral.serve.client import LocalProcess, RemoteEnvironment
from corral.serve.ports import free_port
from corral.serve.security_rules import TOKEN_VARIABLE

logger = logging.getLogger(__name__)

_READY_TIMEOUT_S = 120.0
"""Importing a world's packages for the first time may take a while on a busy machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostedEnvironment:
    """A factory of environments in a virtual environment of their own.

    The first one starts a server there (``corral serve``, on loopback, with a token that nobody
    else knows), which all factories of this process for the same world share. It ends with this
    process, however that ends.
    """

    REQUIRES_OWN_THREAD: ClassVar[bool] = False

    world: str
    """Built-in name, ``module:WORLD`` or ``path.py:WORLD``."""
    python: str
    """The interpreter of the virtual environment."""
    max_sessions: int
    """Environments at a time; further ones wait for a slot."""

    def __call__(self) -> Any:
        """Make an environment: one session of the server."""
        return self._server().remote()()

    def address(self) -> tuple[str, str]:
        """URL and token of the server, which is started if it does not run."""
        server = self._server()
        server.remote()
        return server.url, server.token

    def _server(self) -> "_Server":
        return _server_of(os.getpid(), self)  # a forked child has a server of its own


class _Server:
    def __init__(self, hosted: HostedEnvironment) -> None:
        self.token = secrets.token_urlsafe()
        self._port = free_port()
        self.url = f"http://127.0.0.1:{self._port}"
        self._hosted = hosted
        self._process: LocalProcess | None = None
        self._remote = RemoteEnvironment(self.url, token=self.token)
        self._lock = threading.Lock()

    def remote(self) -> RemoteEnvironment:
        """The environments of the running server.

        Raises:
            LaunchError: It could not be started; the message ends with what it wrote.
        """
        with self._lock:
            if self._process is not None and not self._process.is_running:
                logger.warning("The server of %s ended: %s", self._hosted.world, self._process.told)
                io_thread().call(self._process.stop())
                self._process = None
            if self._process is None:
                self._process = self._started()
        return self._remote

    async def close(self) -> None:
        """Stop the server; called when the process ends."""
        if self._process is not None:
            await self._process.stop()

    def _started(self) -> LocalProcess:
        command = [self._hosted.python, "-m", "corral.cli.main", "serve", self._hosted.world]
        command += ["--host", "127.0.0.1", "--port", "{port}", "--mode", "simulation"]
        command += ["--max-sessions", str(self._hosted.max_sessions)]
        command += ["--debug"]  # nobody but us is told what went wrong there
        process = LocalProcess(
            command,
            port=self._port,
            env_vars={TOKEN_VARIABLE: self.token},
            ready_timeout_s=_READY_TIMEOUT_S,
            has_scratch=True,
        )
        io_thread().close_at_exit(self)
        io_thread().call(process.start())
        return process


@cache
def _server_of(process_id: int, hosted: HostedEnvironment) -> _Server:
    return _Server(hosted)
