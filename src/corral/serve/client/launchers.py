"""Servers that a client starts for itself: a local process, a Docker container, a Space."""

import asyncio
import contextlib
import os
import re
import secrets
import shutil
import sys
import time
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from corral.errors import UsageError
from corral.processes import Job, supervisor_command
from corral.serve.client.address import address_of
from corral.serve.client.errors import LaunchError
from corral.serve.client.http import http_status
from corral.serve.ports import free_port

_POLL_S = 0.1
_TAIL_LINES = 20
_GRACE_S = 3.0
"""How long a server may take to end by itself."""


class Launcher(Protocol):
    """Starts a server for one client, and stops it."""

    async def start(self) -> str:
        """Start the server and return its base URL once it is ready.

        Raises:
            LaunchError: It did not become ready; nothing of it is left.
        """
        ...

    async def stop(self) -> None:
        """Stop the server; does nothing if none runs."""
        ...


class LocalProcess:
    """A server in a process of its own, on a free port of this machine.

    ::

        LocalProcess("my_env:MyEnv")                                   # corral serve my_env:MyEnv
        LocalProcess(["uvicorn", "server.app:app", "--port", "{port}"])  # any command

    It ends with the client, and with this process, however that ends.
    """

    def __init__(
        self,
        serves: str | Sequence[str],
        *,
        port: int | None = None,
        env_vars: Mapping[str, str] | None = None,
        working_directory: str | Path | None = None,
        ready_timeout_s: float = 30.0,
        has_scratch: bool = False,
    ) -> None:
        """
        Args:
            serves: What ``corral serve`` takes; or a command in whose words ``{port}`` is replaced.
            port: None takes a free one.
            env_vars: Added to the environment variables of this process.
            has_scratch: Whether it gets a folder for temporary files, which is gone with it.
        """
        self._serves = serves
        self._port = port
        self._env_vars = dict(env_vars or {})
        self._directory = working_directory
        self._ready_timeout_s = ready_timeout_s
        self._has_scratch = has_scratch
        self._process: _Supervised | None = None

    async def start(self) -> str:
        """Start the server and wait until ``/health`` answers."""
        port = self._port or free_port()
        command = self._command(port)
        return await self._start(command, port, environment={**os.environ, **self._env_vars})

    @property
    def is_running(self) -> bool:
        """Whether the server was started and has not ended."""
        return self._process is not None and not self._process.has_ended

    @property
    def told(self) -> str:
        """Its command and the last lines it wrote."""
        return self._process.told() if self._process is not None else ""

    async def stop(self) -> None:
        """End the server and everything it started."""
        process, self._process = self._process, None
        if process is not None:
            await process.stop()

    async def _start(
        self,
        command: Sequence[str],
        port: int,
        *,
        environment: Mapping[str, str],
        cleanup: Sequence[str] = (),
    ) -> str:
        if self._process is not None:
            raise UsageError("This launcher has started its server already; make another one.")
        url = f"http://127.0.0.1:{port}"
        job = Job(command=command, cleanup=cleanup, grace_s=_GRACE_S, has_scratch=self._has_scratch)
        process = await _Supervised.start(job, environment, self._directory)
        try:
            await wait_until_ready(url, timeout_s=self._ready_timeout_s, process=process)
        except BaseException:
            await asyncio.shield(asyncio.ensure_future(process.stop()))
            raise
        self._process = process
        return url

    def _command(self, port: int) -> list[str]:
        if not isinstance(self._serves, str):
            return [word.replace("{port}", str(port)) for word in self._serves]
        serve = [sys.executable, "-m", "corral.cli.main", "serve", self._serves]
        return [*serve, "--host", "127.0.0.1", "--port", str(port)]


class DockerImage(LocalProcess):
    """A container that is reachable from this machine only, and removed with the client."""

    def __init__(
        self,
        image: str,
        *,
        port: int | None = None,
        env_vars: Mapping[str, str] | None = None,
        container_port: int = 8000,
        docker_options: Sequence[str] = (),
        ready_timeout_s: float = 120.0,
    ) -> None:
        """
        Args:
            port: On this machine; None takes a free one.
            container_port: Where the server listens in the container.
            docker_options: More options of ``docker run``, such as ``("--memory", "2g")``.
        """
        super().__init__(image, port=port, ready_timeout_s=ready_timeout_s)
        self._image = image
        self._container_vars = dict(env_vars or {})
        self._container_port = container_port
        self._docker_options = list(docker_options)

    async def start(self) -> str:
        """Run the container and wait until ``/health`` answers."""
        docker = shutil.which("docker")
        if docker is None:
            raise LaunchError(
                f"There is no docker command to run {self._image!r} with. Install Docker, or start "
                "the server yourself and give base_url='http://...'."
            )
        port = self._port or free_port()
        name = f"corral-{secrets.token_hex(6)}"
        command = [docker, "run", "--rm", "--init", "--name", name]
        command += ["-p", f"127.0.0.1:{port}:{self._container_port}"]
        for variable in self._container_vars:
            command += ["-e", variable]  # by name: values are not for the list of processes
        command += [*self._docker_options, self._image]
        return await self._start(
            command,
            port,
            environment={**os.environ, **self._container_vars},
            cleanup=[docker, "rm", "--force", name],
        )


class Space:
    """A hosted Space: nothing is started here, but it may have to wake up."""

    def __init__(self, repo_id: str, *, ready_timeout_s: float = 300.0) -> None:
        if not re.fullmatch(r"[\w.-]+/[\w.-]+", repo_id):
            raise UsageError(f"{repo_id!r} is no Space. Write owner/name.")
        self.subdomain = re.sub(r"[^a-z0-9]+", "-", repo_id.lower()).strip("-")
        self.url = f"https://{self.subdomain}.hf.space"
        self._ready_timeout_s = ready_timeout_s

    def image(self, tag: str = "latest") -> str:
        """The Space's Docker image."""
        return f"registry.hf.space/{self.subdomain}:{tag}"

    async def start(self) -> str:
        """Wait until the Space is awake."""
        await wait_until_ready(self.url, timeout_s=self._ready_timeout_s)
        return self.url

    async def stop(self) -> None:
        """Nothing: it is not ours."""


async def wait_until_ready(
    url: str, *, timeout_s: float, process: "_Supervised | None" = None
) -> None:
    """Ask ``/health`` until it answers 200.

    Raises:
        LaunchError: It does not in time, or the process ended.
    """
    address = address_of(url)
    until = time.monotonic() + timeout_s
    last: object = "nothing listens"
    while time.monotonic() < until:
        if process is not None and process.has_ended:
            raise LaunchError(f"The server ended before it was ready. {process.told()}")
        try:
            last = await asyncio.to_thread(http_status, address, "/health", timeout_s=2.0)
        except OSError as error:
            last = error
        if last == 200:
            return
        await asyncio.sleep(_POLL_S)
    told = process.told() if process is not None else ""
    raise LaunchError(
        f"{url}/health did not answer 200 within {timeout_s:g} s (ready_timeout_s); last: {last}. "
        f"{told}".rstrip()
    )


class _Supervised:
    """A command under its supervisor, and the last lines it wrote."""

    def __init__(self, process: asyncio.subprocess.Process, command: Sequence[str]) -> None:
        self._process = process
        self._command = command
        self._tail: deque[str] = deque(maxlen=_TAIL_LINES)
        self._reader = asyncio.create_task(self._read())

    @classmethod
    async def start(cls, job: Job, environment: Mapping[str, str], directory: Any) -> "_Supervised":
        process = await asyncio.create_subprocess_exec(
            *supervisor_command(job),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C is for us; we then close the pipe
            env=dict(environment),
            cwd=directory,
        )
        return cls(process, job.command)

    @property
    def has_ended(self) -> bool:
        return self._process.returncode is not None

    def told(self) -> str:
        lines = "\n".join(self._tail)
        return f"Command: {' '.join(self._command)}" + (f"\nIt wrote:\n{lines}" if lines else "")

    async def stop(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            async with asyncio.timeout(_GRACE_S + 65):
                await self._process.wait()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
        await asyncio.wait({self._reader}, timeout=1.0)
        self._reader.cancel()

    async def _read(self) -> None:
        assert self._process.stdout is not None
        with contextlib.suppress(ValueError):  # a line without end
            async for line in self._process.stdout:
                self._tail.append(line.decode(errors="replace").rstrip())
