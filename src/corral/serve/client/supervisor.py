"""Runs a command as long as whoever started it lives: ``python supervisor.py JSON``.

The starter holds the other end of standard input. When that closes (it stopped the server, was
interrupted, or was killed), the command's whole process group is ended, then the clean-up command
runs. Only the standard library, and nothing of Corral: it must start fast and never fail.
"""

import contextlib
import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import time

_PR_SET_PDEATHSIG = 1
_POLL_S = 0.5


def main() -> int:
    """Run and watch; the exit status is the command's."""
    for wanted in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(wanted, _stop)
    job = json.loads(sys.argv[1])
    parent = os.getppid()
    try:
        child = subprocess.Popen(
            job["command"],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=_die_with_parent,
        )
    except OSError as error:
        print(f"{job['command'][0]}: {error.strerror}", file=sys.stderr)  # noqa: T201
        return 127
    try:
        _watch(child, parent)
    except _Stopped:
        pass
    finally:
        for wanted in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(wanted, signal.SIG_IGN)
        _end(child, job["grace_s"])
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


def _signal(child: "subprocess.Popen[bytes]", number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, number)


def _die_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())
