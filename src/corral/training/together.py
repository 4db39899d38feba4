"""Playing as one: all know of a failure of one process, and dead infrastructure is waited for.

Processes meet in collectives. One that raised alone would leave the others waiting there for ever.
"""

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from accelerate.utils import gather_object

from corral.errors import CorralError, InfrastructureFault

logger = logging.getLogger(__name__)

Result = TypeVar("Result")

FIRST_PAUSE_S = 5.0
"""Before everything is played again; doubled for each further time."""
LONGEST_PAUSE_S = 60.0
"""Where doubling ends."""


class ProcessError(CorralError):
    """Another process of the run failed; its own log has the whole story."""


def play_together(play: Callable[[], Result], *, patience_s: float) -> Result:
    """What ``play`` returns, on every process; called by all of them.

    Where everything that was played failed beneath the environments, it is played again after a
    pause (from the same seeds), until ``patience_s`` seconds have passed.

    Raises:
        Exception: What ``play`` raised here.
        ProcessError: It raised in another process only.
    """
    started, pause = time.monotonic(), FIRST_PAUSE_S
    while True:
        result: Result | None = None
        error: Exception | None = None
        try:
            result = play()
        except Exception as raised:  # noqa: BLE001 - told to the other processes, then raised
            error = raised
        told = gather_object([_told(error, time.monotonic() - started)])
        failures = {place: text for place, (text, _, _) in enumerate(told) if text}
        if not failures:
            return result  # type: ignore[return-value]
        is_beneath = all(infrastructure for text, infrastructure, _ in told if text)
        if not is_beneath or max(seconds for _, _, seconds in told) + pause > patience_s:
            raise error or ProcessError(f"Process {min(failures)}: {failures[min(failures)]}")
        logger.warning("%s Everything is played again in %g s.", failures[min(failures)], pause)
        time.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE_S)


def _told(error: Exception | None, seconds: float) -> tuple[str, bool, float]:
    """What happened, whether it was beneath the environments, and how long it took until now."""
    text = "" if error is None else f"{type(error).__name__}: {error}"
    return text, isinstance(error, InfrastructureFault), seconds
