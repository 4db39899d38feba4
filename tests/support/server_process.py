"""Servers in processes of their own."""

import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from corral.serve.ports import free_port

_TESTS = Path(__file__).resolve().parent.parent


@dataclass
class ServerProcess:
    """A server that can be killed and started again on its port."""

    arguments: Sequence[str]
    """``implementation`` and ``world``, and options for ``serve_world``."""
    port: int
    process: subprocess.Popen[bytes] | None = None
    log: IO[bytes] = field(default_factory=tempfile.TemporaryFile)

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://127.0.0.1:{self.port}"

    def start(self, *, ready_within_s: float = 60.0) -> None:
        """Start it and wait until it is healthy."""
        implementation, world, *options = self.arguments
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "support.serve_world"),
                *(implementation, world, str(self.port), *options),
            ],
            env=os.environ | {"PYTHONPATH": str(_TESTS), "OMP_NUM_THREADS": "1"},
            stdout=self.log,
            stderr=self.log,
        )
        deadline = time.monotonic() + ready_within_s
        while True:
            if self.process.poll() is not None:
                raise RuntimeError(f"the server {list(self.arguments)} ended: {self.said()}")
            try:
                with urllib.request.urlopen(f"{self.url}/health", timeout=1):
                    return
            except urllib.error.HTTPError:
                return  # It answers, if not well; that is for the test to say.
            except OSError:
                if time.monotonic() > deadline:
                    self.kill()
                    raise
                time.sleep(0.05)

    def said(self) -> str:
        """The end of what it logged."""
        self.log.seek(0)
        return self.log.read().decode(errors="replace")[-4000:]

    def kill(self) -> None:
        """End it as a crash would."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


@contextmanager
def served(*arguments: str) -> Iterator[ServerProcess]:
    """A server while the block runs."""
    server = ServerProcess(arguments, free_port())
    server.start()
    try:
        yield server
    finally:
        server.kill()
        server.log.close()
