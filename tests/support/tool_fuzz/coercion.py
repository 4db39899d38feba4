"""Which readings of an argument are unambiguous: an oracle that shares nothing with the library."""

import json
import math
import re
from typing import Any

from support.tool_fuzz.bench import Colour

_YES = {"1", "true", "t", "yes", "y", "on"}
_NO = {"0", "false", "f", "no", "n", "off"}


def is_fair(kind: str, raw: Any, received: Any) -> bool:
    """Whether a tool may receive ``received`` where the model wrote ``raw``."""
    match kind:
        case "any":
            return type(raw) is type(received) and raw == received
        case "str":
            return type(received) is str and (raw == received or _is_number(raw, received))
        case "int":
            return type(received) is int and _as_int(raw) == received
        case "int?":
            return received is raw if raw is None else is_fair("int", raw, received)
        case "float":
            return type(received) is float and _as_float(raw) == received
        case "bool":
            return type(received) is bool and _as_bool(raw) is received
        case "choice":
            return received in ("left", "right") and raw == received
        case "enum":
            is_same = isinstance(received, Colour) and received.value == raw
            return is_same or str(received.value) == _written(raw)
        case "list":
            items = _decoded(raw)
            return _is_list_of_ints(items, received)
        case "dict":
            return _is_dict_of_ints(_decoded(raw), received)
        case _:
            raise AssertionError(kind)


def _is_list_of_ints(raw: Any, received: Any) -> bool:
    if not isinstance(raw, list) or type(received) is not list or len(raw) != len(received):
        return False
    return all(is_fair("int", one, other) for one, other in zip(raw, received, strict=True))


def _is_dict_of_ints(raw: Any, received: Any) -> bool:
    if not isinstance(raw, dict) or type(received) is not dict or list(raw) != list(received):
        return False
    return all(is_fair("int", raw[key], received[key]) for key in raw)


def _is_number(raw: Any, received: str) -> bool:
    is_number = isinstance(raw, int | float) and not isinstance(raw, bool)
    return is_number and float(received) == float(raw)


def _as_int(raw: Any) -> int | None:
    if isinstance(raw, bool):
        return None
    if isinstance(raw, int):
        return raw
    if isinstance(raw, float):
        return int(raw) if raw.is_integer() else None
    if isinstance(raw, str):
        found = re.fullmatch(r"\s*([+-]?[0-9]+(?:_[0-9]+)*)(?:\.0*)?\s*", raw)
        return int(found[1]) if found else None
    return None


def _as_float(raw: Any) -> float | None:
    if isinstance(raw, bool) or not isinstance(raw, int | float | str):
        return None
    try:
        number = float(raw)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _as_bool(raw: Any) -> bool | None:
    word = _written(raw).lower()
    if isinstance(raw, float) and raw in (0.0, 1.0):
        return bool(raw)
    return True if word in _YES else False if word in _NO else None


def _written(raw: Any) -> str:
    return str(raw)


def _decoded(raw: Any) -> Any:
    """Text of a list or an object is one, unless two readers could differ about what it holds."""
    if not isinstance(raw, str):
        return raw
    try:
        return json.loads(raw, object_pairs_hook=_unique, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a key comes twice")
    return dict(pairs)


def _refuse(name: str) -> Any:
    raise ValueError(name)
