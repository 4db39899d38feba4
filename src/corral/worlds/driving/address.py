"""Where the CARLA server is; no client is needed to look."""

import os
import socket

from corral.errors import UsageError

VARIABLE = "CORRAL_CARLA"
DEFAULT = "127.0.0.1:2000"
"""Where a CARLA server listens that is told nothing else."""
_TIMEOUT_S = 5.0


def carla_address() -> tuple[str, int]:
    """Host and port that ``CORRAL_CARLA`` names, else those of a server on this machine.

    Raises:
        UsageError: It is not ``HOST:PORT``.
    """
    named = os.environ.get(VARIABLE) or DEFAULT
    host, colon, port = named.rpartition(":")
    if not colon or not host or not port.isdecimal():
        raise UsageError(f"{VARIABLE}={named!r}: write HOST:PORT, such as {DEFAULT}.")
    return host, int(port)


def carla_problem() -> str | None:
    """What to do where no server answers; None where one does."""
    host, port = carla_address()
    try:
        socket.create_connection((host, port), timeout=_TIMEOUT_S).close()
    except OSError as error:
        return (
            f"No CARLA server answers at {host}:{port} ({error}). Start one, or name another as "
            f"HOST:PORT in {VARIABLE}."
        )
    return None
