"""The process of one environment, and the socket to it."""

import contextlib
import socket
import subprocess
import sys
from typing import Any

from corral.env.own_process.channel import Channel
from corral.processes import Job, supervisor_command

_GRACE_S = 1.0
"""How long it may take to end by itself, once nobody wants it any more."""
_ENDING_S = 15.0
"""How long the supervisor may take; far more than it gives itself."""
_GOODBYE_S = 5.0
"""How long the environment's ``close`` may take."""


class Started:
    """A process under a supervisor, which ends it and all below it."""

    def __init__(self, process: "subprocess.Popen[bytes]", channel: Channel) -> None:
        self._process = process
        self._channel = channel
        self._is_asked = False

    @classmethod
    def start(cls, environment: str) -> "Started":
        """Start the process of an environment, named as ``module:Class`` or ``path.py:Class``."""
        ours, theirs = socket.socketpair()
        descriptor = theirs.fileno()
        job = Job(
            command=[sys.executable, "-m", "corral.env.own_process.child", str(descriptor)],
            grace_s=_GRACE_S,
            file_descriptors=[descriptor],
            has_scratch=True,
        )
        with theirs:
            process = subprocess.Popen(
                supervisor_command(job),
                stdin=subprocess.PIPE,
                stdout=2,  # what it prints is for people; our output may be data
                start_new_session=True,  # Ctrl-C is for us; we then close the pipe
                pass_fds=[descriptor],
            )
        channel = Channel(ours)
        with contextlib.suppress(EOFError):  # whoever asks is told that it has ended
            channel.send({"environment": environment, "path": sys.path})
        return cls(process, channel)

    def ask(self, name: str, arguments: Any, *, timeout_s: float) -> dict[str, Any]:
        """Call a member of the environment.

        Raises:
            EOFError: The process has ended.
            TimeoutError: No answer came in time; none may be waited for any more.
        """
        self._is_asked = True
        self._channel.send({"call": name, "arguments": arguments}, timeout_s=timeout_s)
        answer = self._channel.receive(timeout_s=timeout_s)
        self._is_asked = False
        return answer

    @property
    def is_waiting(self) -> bool:
        """Whether it is there and does nothing."""
        return not self._is_asked and self._channel.is_silent

    def say_goodbye(self) -> None:
        """Let the environment close itself, unless a call to it is under way."""
        if not self._is_asked:
            with contextlib.suppress(EOFError, TimeoutError):
                self.ask("close", {}, timeout_s=_GOODBYE_S)

    def end(self) -> None:
        """End the process and all below it; returns when they are gone."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(timeout=_ENDING_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._channel.close()
