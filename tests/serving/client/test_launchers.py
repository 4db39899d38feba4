"""Servers that a client starts: ready when they say so, and gone when it is."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from corral.env.io_thread import io_thread
from corral.errors import UsageError
from corral.serve.client import DockerImage, EnvClient, LaunchError, LocalProcess
from corral.serve.client.address import address_of
from corral.serve.client.http import http_status
from corral.serve.ports import free_port

SLOW_SERVER = """
import http.server, os, subprocess, sys, tempfile, time
port, marker, ready_after = int(sys.argv[1]), sys.argv[2], float(sys.argv[3])
grandchild = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
open(marker, "w").write(f"{os.getpid()} {grandchild.pid}")
open(marker + ".scratch", "w").write(tempfile.gettempdir())
born = time.monotonic()
print("hello from the server", flush=True)

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if time.monotonic() - born > ready_after else 503)
        self.end_headers()
    def log_message(self, *args):
        pass

http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
"""


def command(marker: Path, ready_after: float = 0.0) -> list[str]:
    return [sys.executable, "-c", SLOW_SERVER, "{port}", str(marker), str(ready_after)]


def pids(marker: Path) -> list[int]:
    deadline = time.monotonic() + 10
    while not marker.exists() or len(marker.read_text().split()) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return [int(pid) for pid in marker.read_text().split()]


def assert_gone(marker: Path, within_s: float = 8.0) -> None:
    deadline = time.monotonic() + within_s
    for pid in pids(marker):
        while is_running(pid):
            assert time.monotonic() < deadline, f"{pid} still runs"
            time.sleep(0.05)


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


@pytest.mark.report("P111")
def test_a_server_is_ready_only_when_health_says_so_and_gone_after_stop(tmp_path: Path):
    launcher = LocalProcess(command(tmp_path / "pids", ready_after=0.7))
    started = time.monotonic()
    url = io_thread().call(launcher.start())
    assert time.monotonic() - started > 0.6
    assert http_status(address_of(url), "/health", timeout_s=5) == 200
    io_thread().call(launcher.stop())
    io_thread().call(launcher.stop())
    assert_gone(tmp_path / "pids")


def test_what_a_server_leaves_in_its_folder_for_temporary_files_is_gone_with_it(tmp_path: Path):
    here = {"TMPDIR": str(tmp_path)}
    launcher = LocalProcess(command(tmp_path / "pids"), env_vars=here, has_scratch=True)
    io_thread().call(launcher.start())
    scratch = Path((tmp_path / "pids.scratch").read_text())
    assert scratch.is_dir()
    assert scratch.parent == tmp_path
    (scratch / "left").mkdir()
    io_thread().call(launcher.stop())
    assert not scratch.exists()


def test_a_command_that_is_not_there_leaves_no_folder(tmp_path: Path):
    here = {"TMPDIR": str(tmp_path)}
    launcher = LocalProcess(["no-such-program"], env_vars=here, has_scratch=True)
    with pytest.raises(LaunchError, match="no-such-program"):
        io_thread().call(launcher.start())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.report("P097")
def test_a_server_that_never_gets_ready_leaves_nothing(tmp_path: Path):
    launcher = LocalProcess(command(tmp_path / "pids", ready_after=600), ready_timeout_s=2)
    with pytest.raises(LaunchError, match="hello from the server"):
        io_thread().call(launcher.start())
    assert_gone(tmp_path / "pids")


def test_a_command_that_ends_at_once_says_what_it_wrote():
    launcher = LocalProcess([sys.executable, "-c", "print('no such world'); raise SystemExit(3)"])
    with pytest.raises(LaunchError, match="no such world"):
        io_thread().call(launcher.start())
    with pytest.raises(LaunchError, match="No such file"):
        io_thread().call(LocalProcess(["/no/such/program"]).start())


PARENT = """
import sys, time
from corral.serve.client import LocalProcess
from corral.env.io_thread import io_thread
launcher = LocalProcess(sys.argv[1:], ready_timeout_s={ready_s})
io_thread().call(launcher.start())
print("started", flush=True)
{then}
"""


@pytest.mark.report("P217")
@pytest.mark.parametrize(
    ("how", "then", "ready_after"),
    [
        ("killed", "time.sleep(600)", 0.0),
        ("interrupted", "time.sleep(600)", 0.0),
        ("interrupted while starting", "", 600.0),
        ("ends without stopping it", "", 0.0),
        ("raises", "raise ValueError", 0.0),
        ("forked and killed", "import os; os.fork(); time.sleep(600)", 0.0),
    ],
)
def test_nothing_is_left_when_the_starter_is(
    how: str, then: str, ready_after: float, tmp_path: Path
):
    marker = tmp_path / "pids"
    parent = subprocess.Popen(
        [
            sys.executable,
            "-c",
            textwrap.dedent(PARENT.format(ready_s=600, then=then)),
            *command(marker, ready_after),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert parent.stdout is not None
    try:
        if ready_after == 0:
            assert parent.stdout.readline() == b"started\n"
        pids(marker)
        if "killed" in how:
            parent.send_signal(signal.SIGKILL)
        elif "interrupted" in how:
            os.killpg(parent.pid, signal.SIGINT)
        parent.wait(timeout=15)
        assert_gone(marker)
    finally:
        parent.stdout.close()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(parent.pid, signal.SIGKILL)


FAKE_DOCKER = """#!{python}
import json, os, subprocess, sys
with open({log!r}, "a") as log:
    log.write(json.dumps([sys.argv[1:], os.environ.get("SECRET")]) + "\\n")
if sys.argv[1] == "run":
    port = sys.argv[sys.argv.index("-p") + 1].split(":")[1]
    os.execv({python!r}, [{python!r}, "-c", {server!r}, port, {marker!r}, "0"])
"""


@pytest.mark.report("P214")
def test_a_container_is_bound_to_this_machine_and_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    log, docker = tmp_path / "log", tmp_path / "bin" / "docker"
    docker.parent.mkdir()
    docker.write_text(
        FAKE_DOCKER.format(
            python=sys.executable,
            log=str(log),
            server=SLOW_SERVER,
            marker=str(tmp_path / "pids"),
        )
    )
    docker.chmod(0o755)
    monkeypatch.setenv("PATH", f"{docker.parent}:{os.environ['PATH']}")
    port = free_port()
    launcher = DockerImage(
        "owner/image:tag",
        port=port,
        env_vars={"SECRET": "s3cret"},
        container_port=9000,
        docker_options=("--memory", "2g"),
    )
    assert io_thread().call(launcher.start()) == f"http://127.0.0.1:{port}"
    io_thread().call(launcher.stop())
    (run, secret), (remove, _) = [json.loads(line) for line in log.read_text().splitlines()]
    name = run[run.index("--name") + 1]
    assert run == [
        *("run", "--rm", "--init", "--name", name, "-p", f"127.0.0.1:{port}:9000"),
        *("-e", "SECRET", "--memory", "2g", "owner/image:tag"),
    ]
    assert secret == "s3cret"
    assert remove == ["rm", "--force", name]
    assert_gone(tmp_path / "pids")


def test_without_docker_the_remedy_is_told(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", "/nowhere")
    env = EnvClient.from_docker_image("image", ready_timeout_s=1.0, message_timeout_s=5.0)
    with pytest.raises(LaunchError, match=r"no docker command.*base_url"):
        env.reset()
    env.close()


def test_a_space_is_run_in_docker_or_used_where_it_is():
    here = EnvClient.from_env("owner/my_env", tag="v2", env_vars={"A": "1"}, token="sesame")
    hosted = EnvClient.from_env("owner/my_env", use_docker=False)
    assert here.options.token == "sesame"
    assert here._holder._launcher._image == "registry.hf.space/owner-my-env:v2"  # type: ignore[union-attr]
    assert hosted._holder._launcher.url == "https://owner-my-env.hf.space"  # type: ignore[union-attr]
    with pytest.raises(TypeError):
        EnvClient.from_env("owner/my_env", nonsense=1)


async def test_a_client_starts_and_stops_its_server(tmp_path: Path):
    launcher = LocalProcess("echo", ready_timeout_s=60)
    async with EnvClient(provider=launcher) as env:
        assert env.is_resumable
        await env.reset()
        action = {"type": "call_tool", "tool_name": "echo", "arguments": {"message": "hi"}}
        assert (await env.step(action)).observation["result"] == "hi"
        other = env.new_session()
        await other.reset()
        await other.close()
        url = address_of(env._holder.base_url or "")
    with pytest.raises(OSError, match=r"refused|reset"):
        http_status(url, "/health", timeout_s=1)


def test_a_client_needs_one_of_url_and_provider():
    for options in ({}, {"base_url": "http://h", "provider": LocalProcess("echo")}):
        with pytest.raises(UsageError, match="base_url or provider"):
            EnvClient(**options)  # type: ignore[arg-type]
