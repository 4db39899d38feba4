"""Frames of the ``/ws`` protocol: JSON text in, JSON text out."""

from typing import Any, Final

from pydantic_core import from_json, to_json

from corral.serve.faults import Code, InvalidRequest, ServeFault, problem
from corral.serve.world import Observed

Frame = dict[str, Any]

KEYS: Final = {
    "reset": frozenset({"type", "data"}),
    "step": frozenset({"type", "data"}),
    "state": frozenset({"type"}),
    "close": frozenset({"type"}),
    "mcp": frozenset({"type", "data"}),
}
"""What a frame of each type may hold."""
_EXTENDED_KEYS: Final = {
    kind: keys | ({"id", "timeout_s"} if kind == "step" else {"id"}) for kind, keys in KEYS.items()
}
_NEEDS_DATA: Final = frozenset({"step", "mcp"})


class NotAnObject(ServeFault):
    """A frame that is JSON, but no object."""


def parse(text: str) -> Frame:
    """A frame as an object, of whatever type.

    Raises:
        ServeFault: It is not JSON (``INVALID_JSON``).
        NotAnObject: It is JSON, but no object.
    """
    try:
        value = from_json(text, allow_inf_nan=False)
    except ValueError as error:
        raise ServeFault(Code.INVALID_JSON, f"Invalid JSON: {error}") from None
    if not isinstance(value, dict):
        raise NotAnObject(Code.SESSION_ERROR, "A frame must be a JSON object.")
    return value


def check(frame: Frame, *, is_extended: bool = False) -> str:
    """Check the envelope; the type of the frame.

    Raises:
        ServeFault: ``UNKNOWN_TYPE`` or ``VALIDATION_ERROR``.
    """
    kind = frame.get("type", "")
    keys = (_EXTENDED_KEYS if is_extended else KEYS).get(kind) if isinstance(kind, str) else None
    if keys is None:
        raise ServeFault(Code.UNKNOWN_TYPE, f"Unknown message type: {str(kind)[:80]}")
    data = frame.get("data")
    if isinstance(data, dict):
        if keys.issuperset(frame):
            return kind
    elif "data" not in frame and kind not in _NEEDS_DATA and keys.issuperset(frame):
        return kind
    raise InvalidRequest(list(_problems(frame, kind, keys)))


def _problems(frame: Frame, kind: str, keys: frozenset[str]):
    if "data" not in frame:
        if kind in _NEEDS_DATA:
            yield problem("missing", ["data"], "Field required")
    elif "data" in keys and not isinstance(frame["data"], dict):
        yield problem("dict_type", ["data"], "Input should be a valid dictionary")
    for name in frame:
        if name not in keys:
            yield problem("extra_forbidden", [name], "Extra inputs are not permitted")


def time_limit(frame: Frame) -> float | None:
    """The ``timeout_s`` of a ``corral.v1`` step.

    Raises:
        InvalidRequest: It is no positive number.
    """
    value = frame.get("timeout_s")
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
        raise InvalidRequest(
            [problem("greater_than", ["timeout_s"], "Input should be a number above 0")]
        )
    return float(value)


def encode(kind: str, data: Any, request_id: int | None = None) -> str:
    """A frame as text; what is no finite number becomes null, as OpenEnv has it."""
    frame = {"type": kind, "data": data}
    if request_id is not None:
        frame["id"] = request_id
    return to_json(frame, inf_nan_mode="null").decode()


def observation_data(observed: Observed) -> dict[str, Any]:
    """The ``data`` of an observation frame."""
    data = {
        "observation": observed.observation,
        "reward": observed.reward,
        "done": observed.done,
    }
    if observed.metadata:
        data["metadata"] = observed.metadata
    return data


def error_frame(fault: ServeFault, request_id: int | None = None) -> str:
    """A failure as text."""
    return encode("error", fault.as_data(), request_id)
