"""What can go wrong on a server, as the peer is told it.

A peer gets a code, a sentence without internals and an id; what the environment really raised is
in the server's log beside that id.
"""

import logging
from collections.abc import Sequence
from enum import StrEnum
from typing import Any
from uuid import uuid4

from pydantic import ValidationError

from corral.errors import CorralError, InfrastructureFault

logger = logging.getLogger(__name__)


class Code(StrEnum):
    """The codes of error frames; the first seven are OpenEnv's."""

    INVALID_JSON = "INVALID_JSON"
    UNKNOWN_TYPE = "UNKNOWN_TYPE"
    VALIDATION_ERROR = "VALIDATION_ERROR"
    EXECUTION_ERROR = "EXECUTION_ERROR"
    CAPACITY_REACHED = "CAPACITY_REACHED"
    FACTORY_ERROR = "FACTORY_ERROR"
    SESSION_ERROR = "SESSION_ERROR"
    STEP_TIMEOUT = "STEP_TIMEOUT"
    """Only between Corral peers; others see `SESSION_ERROR`."""
    OUT_OF_ORDER = "OUT_OF_ORDER"
    """Only between Corral peers: a request id beyond the next one."""
    SESSION_LOST = "SESSION_LOST"
    """Only between Corral peers: the session to attach to does not exist."""


class ServeFault(CorralError):
    """A failure as the peer sees it: a code, a sentence, and what else the frame holds."""

    def __init__(self, code: Code, message: str, **details: Any) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.details = details

    def as_data(self) -> dict[str, Any]:
        """The ``data`` of an error frame."""
        return {"message": self.message, "code": self.code.value, **self.details}


class InvalidRequest(ServeFault):
    """The peer sent what does not fit; nothing was executed."""

    def __init__(self, errors: Sequence[Any], message: str = "Invalid message") -> None:
        super().__init__(Code.VALIDATION_ERROR, message, errors=list(errors))
        self.errors = list(errors)


class CapacityReached(ServeFault):
    """All slots are taken."""

    def __init__(self, active_sessions: int, max_sessions: int) -> None:
        super().__init__(
            Code.CAPACITY_REACHED,
            f"Server at capacity: {active_sessions}/{max_sessions} sessions active. "
            "Cannot accept new connections.",
            active_sessions=active_sessions,
            max_sessions=max_sessions,
        )


class StepTimeout(ServeFault):
    """A call took longer than allowed, and its session was ended."""

    def __init__(self, what: str, limit_s: float) -> None:
        super().__init__(
            Code.STEP_TIMEOUT,
            f"{what} took longer than {limit_s:g} s, so the session was ended.",
            limit_s=limit_s,
        )


class SessionEnded(ServeFault):
    """The session does not exist any more."""

    def __init__(self, message: str) -> None:
        super().__init__(Code.SESSION_ERROR, message)


def problem(kind: str, place: Sequence[str | int], message: str) -> dict[str, Any]:
    """One entry of the ``errors`` of a validation error, in pydantic's form."""
    return {"type": kind, "loc": list(place), "msg": message}


def problems_of(error: ValidationError) -> list[dict[str, Any]]:
    """What pydantic found wrong, without its inputs, contexts and links."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    return [{**entry, "loc": list(entry["loc"])} for entry in found]


def execution_fault(what: str, error: BaseException, *, is_debug: bool = False) -> ServeFault:
    """Log what user code raised and make of it what a peer may see."""
    if isinstance(error, ServeFault):
        return error
    error_id = uuid4().hex[:12]
    cause = error.__cause__ if error.__cause__ is not None else error
    logger.error("%s failed (error %s)", what, error_id, exc_info=cause)
    message = f"{what} failed. The server's log has the details under error {error_id}."
    if is_debug:
        message += f" {type(cause).__name__}: {cause}"
    fault = "infrastructure" if isinstance(error, InfrastructureFault) else "environment"
    return ServeFault(Code.EXECUTION_ERROR, message, error_id=error_id, fault=fault)


def factory_fault(name: str, error: BaseException) -> ServeFault:
    """Log why an environment could not be constructed, and say that it could not."""
    error_id = uuid4().hex[:12]
    logger.error("%s could not be constructed (error %s)", name, error_id, exc_info=error)
    return ServeFault(
        Code.FACTORY_ERROR,
        f"Environment factory {name!r} failed to create instance.",
        factory_name=name,
        error_id=error_id,
    )
