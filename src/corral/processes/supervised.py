"""What is run under a supervisor, and the command that does it."""

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

_SUPERVISOR = Path(__file__).with_name("supervisor.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A command, and how it is ended."""

    command: Sequence[str]
    cleanup: Sequence[str] = ()
    """A command that is run after the end."""
    grace_s: float = 3.0
    """How long the command, and then what it leaves behind, may take to end by itself."""
    file_descriptors: Sequence[int] = ()
    """What the command inherits beside its standard streams."""
    has_scratch: bool = False
    """Whether it gets a folder for temporary files (``TMPDIR``), which is gone after the end."""


def supervisor_command(job: Job) -> list[str]:
    """What to start in place of ``job.command``, with a pipe as standard input.

    The job runs until the pipe is closed, which the system does for a starter that is killed. Then
    its process group is told to end, and whatever of its descendants is left is killed.
    """
    return [sys.executable, "-I", str(_SUPERVISOR), json.dumps(asdict(job))]
