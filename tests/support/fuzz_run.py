"""A whole run of the fuzzer against one server process."""

import asyncio
import random
from dataclasses import dataclass, field

from support.fuzz import Verdicts, fuzz_bytes, fuzz_http, fuzz_size, fuzz_socket, memory_mb
from support.server_process import ServerProcess

_SHARES = {"plain": 0.4, "extended": 0.2, "mcp": 0.1, "http": 0.2, "bytes": 0.1}


@dataclass
class FuzzReport:
    """What came of it."""

    verdicts: Verdicts = field(default_factory=Verdicts)
    memory_mb: list[float] = field(default_factory=list[float])
    """After each round; the first one warms the server up."""
    is_alive: bool = False


async def run_fuzz(server: ServerProcess, *, count: int, rounds: int, seed: int) -> FuzzReport:
    """Send ``count`` malformed things in ``rounds`` rounds, and look at the memory after each."""
    report = FuzzReport()
    assert server.process is not None
    for number in range(rounds):
        chance = random.Random(f"{seed}/{number}")
        shares = {name: max(1, int(count / rounds * share)) for name, share in _SHARES.items()}
        url, seen = server.url, report.verdicts
        streams = {name: random.Random(chance.random()) for name in shares}
        await asyncio.gather(
            fuzz_socket(url, "/ws", shares["plain"], streams["plain"], seen, is_extended=False),
            fuzz_socket(
                url, "/ws", shares["extended"], streams["extended"], seen, is_extended=True
            ),
            fuzz_socket(url, "/mcp", shares["mcp"], streams["mcp"], seen, is_extended=False),
            fuzz_http(url, shares["http"], streams["http"], seen),
            asyncio.to_thread(fuzz_bytes, url, shares["bytes"], streams["bytes"], seen),
        )
        await fuzz_size(url, seen)
        report.memory_mb.append(round(memory_mb(server.process.pid), 1))
    report.is_alive = server.process.poll() is None
    return report
