"""What can go wrong between a client and a server, each with a type of its own.

All of them are `corral.CorralError`. Those that say nothing about the model are infrastructure
faults: a rollout then plays the episode again on a fresh environment.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from corral.errors import CorralError, InfrastructureFault, UsageError


class RemoteError(CorralError, RuntimeError):
    """The server answered a request with an error frame.

    ``code`` is its stable name, ``message`` its text, ``errors`` the list of what is wrong with an
    action (``VALIDATION_ERROR``), ``details`` everything else that the frame had.
    """

    def __init__(
        self,
        message: str,
        *,
        code: str = "UNKNOWN",
        errors: Sequence[Any] = (),
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.errors = list(errors)
        self.details = dict(details or {})

    def __str__(self) -> str:
        listed = f" {self.errors}" if self.errors else ""
        return f"Server error: {self.message} (code: {self.code}){listed}"


class ActionError(RemoteError):
    """The action or the request does not fit (``VALIDATION_ERROR``); the session goes on."""


class ExecutionError(RemoteError):
    """The environment raised in ``reset``, ``step`` or ``state``; the session goes on."""


class FactoryError(RemoteError):
    """The environment could not be constructed; there is no session."""


class BeneathEnvironmentError(ExecutionError, InfrastructureFault):
    """What the environment stands on failed (its process, a connection), and not its code."""


class CapacityError(RemoteError, InfrastructureFault):
    """All slots of the server are taken, and none came free in time."""

    @property
    def active_sessions(self) -> int | None:
        """How many slots are taken, where the server says so."""
        return self.details.get("active_sessions")

    @property
    def max_sessions(self) -> int | None:
        """How many slots there are, where the server says so."""
        return self.details.get("max_sessions")


class SessionLostError(InfrastructureFault, RuntimeError, ConnectionError):
    """The session that was last reset is gone; only ``reset`` starts another one."""


class ServerUnreachableError(InfrastructureFault, ConnectionError):
    """No connection to the server came about."""


class RequestTimeoutError(InfrastructureFault, TimeoutError):
    """No answer came in time; the session is given up, so that a late one reaches nobody."""


class ProtocolError(InfrastructureFault, RuntimeError):
    """The server said what this protocol does not have."""


class MessageTooLargeError(CorralError, RuntimeError):
    """A frame is larger than one of the two sides accepts."""


class AuthenticationError(UsageError, PermissionError):
    """The server wants a token, or another one."""


class ClientClosedError(UsageError, RuntimeError):
    """The client was closed; make another one."""


class LaunchError(InfrastructureFault, RuntimeError):
    """A server could not be started, or did not become ready."""


class ToolCallError(CorralError, RuntimeError):
    """A tool raised, or there is no such tool; the message is the server's, for the model."""


_BY_CODE: dict[str, type[RemoteError]] = {
    "VALIDATION_ERROR": ActionError,
    "EXECUTION_ERROR": ExecutionError,
    "FACTORY_ERROR": FactoryError,
    "CAPACITY_REACHED": CapacityError,
}
_LOST_CODES = frozenset({"SESSION_ERROR", "SESSION_LOST", "SESSION_EXPIRED"})
FATAL_CODES = frozenset({"FACTORY_ERROR", "CAPACITY_REACHED", "STEP_TIMEOUT"}) | _LOST_CODES
"""After these the server ends the session."""


def error_from_data(data: object) -> CorralError:
    """The exception that says what an error frame's ``data`` says."""
    told = dict(cast("Mapping[str, Any]", data)) if isinstance(data, Mapping) else {}
    message = str(told.pop("message", "the server gave no reason"))
    code = str(told.pop("code", "UNKNOWN"))
    errors: Any = told.pop("errors", None)
    if code in _LOST_CODES:
        return SessionLostError(f"Server error: {message} (code: {code})")
    if code == "STEP_TIMEOUT":
        return RequestTimeoutError(f"Server error: {message} (code: {code})")
    kind = _BY_CODE.get(code, RemoteError)
    if kind is ExecutionError and told.get("fault") == "infrastructure":
        kind = BeneathEnvironmentError
    return kind(message, code=code, errors=errors if isinstance(errors, list) else (), details=told)
