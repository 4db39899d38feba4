"""Turns whatever a run produces into strict JSON, without importing numpy or torch.

Strict JSON has no NaN and no infinity. They are written as the strings ``"NaN"``, ``"Infinity"``
and ``"-Infinity"``, so that a diverged loss stays visible and is never read as 0 or as missing;
``as_number`` turns them back.
"""

import dataclasses
import json
import math
from collections.abc import Iterable, Mapping
from datetime import date, datetime, time
from enum import Enum
from pathlib import PurePath
from typing import Any

NON_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
MAX_DEPTH = 64
"""Deeper values are cut: nothing a run records nests so deep, except a structure with a cycle."""


def dumps(value: Any) -> str:
    """One line of strict JSON. ASCII only, so no reader can split it at U+2028 or choke on it."""
    return json.dumps(to_jsonable(value), ensure_ascii=True, allow_nan=False)


def to_jsonable(value: Any, *, depth: int = 0) -> Any:
    """The nearest value of JSON's own types; objects of unknown kind become their ``repr``."""
    if value is None or isinstance(value, bool):
        return value
    if depth > MAX_DEPTH:
        return "…"
    scalar = _scalar(value)
    if scalar is not None:
        return scalar
    if hasattr(value, "get_secret_value"):
        return "**********"
    if isinstance(value, Mapping):
        return {_key(key): to_jsonable(item, depth=depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_jsonable(item, depth=depth + 1) for item in value]
    if isinstance(value, set | frozenset):
        items = [to_jsonable(item, depth=depth + 1) for item in value]
        return sorted(items, key=lambda item: (str(type(item)), str(item)))
    return _object(value, depth)


def as_number(value: Any) -> Any:
    """A value read from a metrics line, with the names of non-finite numbers turned back."""
    return NON_FINITE.get(value, value) if isinstance(value, str) else value


def _scalar(value: Any) -> Any:
    if isinstance(value, Enum):
        return to_jsonable(value.value)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return _finite(float(value))
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, PurePath):
        return str(value)
    return None


def _finite(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")


def _key(key: Any) -> str:
    return str(key.value) if isinstance(key, Enum) else str(key)


def _object(value: Any, depth: int) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return to_jsonable(fields, depth=depth)
    # Arrays and tensors of any library: "tolist" gives a number for zero dimensions.
    for method in ("model_dump", "tolist", "item"):
        convert = getattr(value, method, None)
        if callable(convert) and not isinstance(value, type):
            return to_jsonable(convert(), depth=depth + 1)
    if isinstance(value, Iterable) and hasattr(value, "__len__") and not isinstance(value, bytes):
        return [to_jsonable(item, depth=depth + 1) for item in value]
    return repr(value)
