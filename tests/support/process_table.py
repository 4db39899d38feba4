"""What runs on this machine, as the kernel tells it."""

import time
from collections.abc import Callable
from pathlib import Path


def is_there(pid: int) -> bool:
    """Whether there is such a process; one that ended and was not collected counts."""
    return Path(f"/proc/{pid}").exists()


def descendants(pid: int) -> dict[int, str]:
    """All processes below ``pid``, with their states (``Z`` for those that ended uncollected)."""
    parents: dict[int, tuple[int, str]] = {}
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent, *_ = place.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(place.parent.name)] = (int(parent), state)
    found, front = dict[int, str](), {pid}
    while front:
        front = {one for one, (parent, _) in parents.items() if parent in front}
        found |= {one: parents[one][1] for one in front}
    return found


def listening_ports(pids: set[int]) -> set[int]:
    """The TCP ports of this machine's loopback that those processes listen on."""
    inodes = {
        link[8:-1]
        for pid in pids
        for link in _links(Path(f"/proc/{pid}/fd"))
        if link.startswith("socket:[")
    }
    ports: set[int] = set()
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[3] == "0A" and fields[9] in inodes:
            ports.add(int(fields[1].partition(":")[2], 16))
    return ports


def wait_until(is_so: Callable[[], bool], *, within_s: float = 15.0) -> bool:
    """Whether it is so at some moment of that time."""
    until = time.monotonic() + within_s
    while time.monotonic() < until:
        if is_so():
            return True
        time.sleep(0.05)
    return is_so()


def _links(folder: Path) -> list[str]:
    found: list[str] = []
    try:
        for link in folder.iterdir():
            found.append(str(link.readlink()))
    except OSError:
        pass
    return found
