"""What is wrong with settings: sentences with name, value and remedy, not pydantic's report."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

SHOWN_CHARACTERS = 80


def explained(error: ValidationError, configuration: str) -> str:
    """One line a wrong setting, such as ``GRPOConfig: top_p=2.0 should be less than ...``."""
    by_name: dict[str, list[ErrorDetails]] = {}
    for detail in error.errors():
        by_name.setdefault(str(detail["loc"][0]) if detail["loc"] else "", []).append(detail)
    lines = [_line(name, details) for name, details in by_name.items()]
    return "\n".join(f"{configuration}: {line}" for line in lines)


def _line(name: str, details: list[ErrorDetails]) -> str:
    messages = list(dict.fromkeys(_message(detail) for detail in details))
    own = [message for message in messages if not message.startswith("should")]
    if own:
        # A validator's own words name the value already.
        text = own[0]
        return text if not name or name in text else f"{name}={_shown(details[0])}: {text}"
    return f"{name}={_shown(details[0])} {', or '.join(messages)}."


def _message(detail: ErrorDetails) -> str:
    message = str(detail["msg"]).removeprefix("Value error, ")
    return f"should{message.removeprefix('Input should')}" if message[:5] == "Input" else message


def _shown(detail: ErrorDetails) -> str:
    value: Any = detail["input"]
    text = repr(value if not isinstance(value, Mapping) else dict(value))
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[: SHOWN_CHARACTERS - 1]}…"
