"""The limits of a server, in one record."""

import os
from dataclasses import dataclass
from enum import StrEnum

from corral.errors import UsageError

DEFAULT_SESSIONS = 64
"""For environments of which several may live in one process."""


class Mode(StrEnum):
    """Which HTTP routes exist."""

    SIMULATION = "simulation"
    """All of them: ``/reset``, ``/step`` and ``/state`` too."""
    PRODUCTION = "production"
    """Those for tools and those that describe; an agent cannot reset its own world over HTTP."""


@dataclass(frozen=True, kw_only=True)
class ServeSettings:
    """What a server allows its clients, and for how long it waits for them."""

    max_sessions: int
    """Environments that may live at the same time, in this process."""
    queue_timeout_s: float = 30.0
    """How long a client waits for a slot; below the 60 s after which OpenEnv clients give up."""
    step_timeout_s: float = 300.0
    """How long one reset, step or tool call may take. Longer ones end their session."""
    idle_timeout_s: float = 900.0
    """A session without a request for so long is ended; 0 keeps it for ever."""
    lease_s: float = 60.0
    """How long a session outlives a dropped connection of a ``corral.v1`` client."""
    mode: Mode = Mode.SIMULATION
    is_debug: bool = False
    """Whether errors tell the client what the environment raised."""

    def __post_init__(self) -> None:
        if self.max_sessions < 1:
            raise UsageError(f"max_sessions={self.max_sessions}: a server needs 1 or more.")
        if self.step_timeout_s <= 0:
            raise UsageError(f"step_timeout_s={self.step_timeout_s}: give a number above 0.")
        for name in ("queue_timeout_s", "idle_timeout_s", "lease_s"):
            if getattr(self, name) < 0:
                raise UsageError(f"{name}={getattr(self, name)}: give 0 or more seconds.")


def choose_mode(mode: str | None) -> Mode:
    """The mode asked for, else the one of ``OPENENV_MODE``, else simulation."""
    text = (mode or os.environ.get("OPENENV_MODE") or Mode.SIMULATION).lower()
    try:
        return Mode(text)
    except ValueError:
        raise UsageError(f"mode={text!r}: choose 'simulation' or 'production'.") from None


def choose_max_sessions(asked: int | None, *, name: str, is_concurrent: bool) -> int:
    """The capacity asked for, else ``MAX_CONCURRENT_ENVS``, else what the environment bears.

    Raises:
        UsageError: More than one session for an environment that does not allow it.
    """
    from_variable = os.environ.get("MAX_CONCURRENT_ENVS")
    if asked is None and from_variable:
        try:
            asked = int(from_variable)
        except ValueError:
            raise UsageError(
                f"MAX_CONCURRENT_ENVS={from_variable!r} is not a whole number."
            ) from None
    if asked is None:
        return DEFAULT_SESSIONS if is_concurrent else 1
    if asked > 1 and not is_concurrent:
        raise UsageError(
            f"{name} does not say that several of its environments may live in one process, so it "
            f"cannot have {asked} sessions. Set SUPPORTS_CONCURRENT_SESSIONS = True on the class, "
            "or serve it with one session."
        )
    return asked
