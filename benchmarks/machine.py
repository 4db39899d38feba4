"""What a benchmark ran on, and how much of it something else was using meanwhile."""

import os
import platform
import time
from pathlib import Path

import psutil
import torch


class LoadMeter:
    """Cores used by everything but this process and its children, from when it is made."""

    def __init__(self) -> None:
        self._started = time.perf_counter()
        self._busy_s = _busy_s()
        self._own_s = _own_s()

    def foreign_cores(self) -> float:
        """The mean number of cores others kept busy; neighbours outside a VM don't show."""
        wall_s = time.perf_counter() - self._started
        others_s = (_busy_s() - self._busy_s) - (_own_s() - self._own_s)
        return round(max(0.0, others_s / wall_s), 2)


def describe_machine() -> str:
    """Processor, cores, memory and versions in one line."""
    gib = psutil.virtual_memory().total / 2**30
    return (
        f"{_processor()}, {os.cpu_count()} cores, {gib:.0f} GiB, Python "
        f"{platform.python_version()}, torch {torch.__version__}, {torch.get_num_threads()} threads"
    )


def _busy_s() -> float:
    times = psutil.cpu_times()
    idle_s = times.idle + getattr(times, "iowait", 0.0)
    # Guest time is part of user time already, and stolen time is nobody's here.
    not_work_s = sum(getattr(times, name, 0.0) for name in ("guest", "guest_nice", "steal"))
    return sum(times) - idle_s - not_work_s


def _own_s() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _processor() -> str:
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.is_file() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
