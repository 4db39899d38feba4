"""Runs a command as long as whoever started it lives: ``python supervisor.py JSON``.

The starter holds the other end of standard input. When that closes (it stopped the command, was
interrupted, or was killed), the command's whole process group is told to end; descendants that
left the group (browsers do) get as long to notice, and are killed then. Only the standard library,
and nothing of Corral: it must start fast and never fail.
"""

import contextlib
import ctypes
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_POLL_S = 0.5
_KILLING_S = 5.0
"""How long killed processes may take to be gone; one that waits for a disk cannot be ended."""


def main() -> int:
    """Run and watch; the exit status is the command's."""
    for wanted in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(wanted, _stop)
    job = json.loads(sys.argv[1])
    parent = os.getppid()
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)  # orphans below become our children, and are found
    scratch = tempfile.mkdtemp(prefix="corral-") if job["has_scratch"] else None
    try:
        child = subprocess.Popen(
            job["command"],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=_die_with_parent,
            pass_fds=job["file_descriptors"],
            env={**os.environ, "TMPDIR": scratch} if scratch else None,
        )
    except OSError as error:
        print(f"{job['command'][0]}: {error.strerror}", file=sys.stderr)  # noqa: T201
        if scratch:
            os.rmdir(scratch)
        return 127
    for descriptor in job["file_descriptors"]:
        os.close(descriptor)  # else whoever reads from the command would not see its end
    try:
        _watch(child, parent)
    except _Stopped:
        pass
    finally:
        for wanted in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(wanted, signal.SIG_IGN)
        _end(child, job["grace_s"])
        _end_descendants(job["grace_s"])
        if scratch:
            shutil.rmtree(scratch, ignore_errors=True)
        if job["cleanup"]:
            subprocess.run(
                job["cleanup"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=60,
                check=False,
            )
    return child.returncode if child.returncode >= 0 else 128 - child.returncode


class _Stopped(Exception):
    pass


def _stop(*_: object) -> None:
    raise _Stopped


def _watch(child: "subprocess.Popen[bytes]", parent: int) -> None:
    """Return when the command ended or nobody wants it any more."""
    while child.poll() is None:
        _reap(child.pid)
        readable, _, _ = select.select([0], [], [], _POLL_S)
        if readable and not os.read(0, 1024):
            return
        if os.getppid() != parent:  # a forked sibling may hold the pipe open
            return


def _end(child: "subprocess.Popen[bytes]", grace_s: float) -> None:
    """End the process group: politely, then not."""
    _signal(child, signal.SIGTERM)
    until = time.monotonic() + grace_s
    while child.poll() is None and time.monotonic() < until:
        time.sleep(0.02)
    _signal(child, signal.SIGKILL)
    child.wait()


def _end_descendants(grace_s: float) -> None:
    """Wait until what the command left behind has ended too, and kill what has not."""
    begun = time.monotonic()
    while time.monotonic() < begun + grace_s + _KILLING_S:
        _reap()
        left = _children()
        if not left:
            return
        if time.monotonic() > begun + grace_s:
            for process in left:  # their own children become ours, and are next
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(process, signal.SIGKILL)
        time.sleep(0.02)


def _reap(command: int | None = None) -> None:
    """Collect adopted processes that have ended, up to the command, which others wait for."""
    with contextlib.suppress(ChildProcessError):
        while ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            if ended.si_pid == command:
                return
            os.waitpid(ended.si_pid, 0)


def _children() -> list[int]:
    """The processes directly below this one; none where there is no ``/proc``."""
    found: list[int] = []
    for place in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            # The name in parentheses may hold anything; state and parent follow it.
            _, parent, *_ = place.read_text().rpartition(")")[2].split()
            if int(parent) == os.getpid():
                found.append(int(place.parent.name))
    return found


def _signal(child: "subprocess.Popen[bytes]", number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, number)


def _die_with_parent() -> None:
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value)


if __name__ == "__main__":
    sys.exit(main())
