"""Threads for user code: enough of them, bounded, and never in the way of the exit."""

import subprocess
import sys
import threading

import pytest

from corral.env.threads import DaemonThreads, environment_threads


def test_threads_are_reused_and_bounded():
    pool = DaemonThreads(2)
    release = threading.Event()
    started = threading.Semaphore(0)

    def block() -> str:
        started.release()
        release.wait(timeout=20)
        return threading.current_thread().name

    futures = [pool.submit(block) for _ in range(4)]
    assert started.acquire(timeout=20)
    assert started.acquire(timeout=20)
    assert not started.acquire(blocking=False)
    release.set()
    assert {future.result(timeout=20) for future in futures} == {
        "corral-environment-0",
        "corral-environment-1",
    }


def test_a_call_that_raises_gives_its_error_to_whoever_waits():
    pool = DaemonThreads(1)
    with pytest.raises(KeyError):
        pool.submit({}.__getitem__, "missing").result(timeout=20)
    assert pool.submit(len, "abc").result(timeout=20) == 3


def test_a_process_has_one_pool():
    assert environment_threads() is environment_threads()


def test_a_hanging_call_does_not_keep_the_process_alive():
    program = (
        "import threading; from corral.env.threads import environment_threads;"
        "environment_threads().submit(threading.Event().wait)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=30)
