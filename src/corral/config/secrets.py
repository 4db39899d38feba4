"""Keeps secrets out of what a run writes down.

Names are compared word by word, so that ``max_output_tokens`` and ``eos_token`` stay readable while
``hf_token`` and ``OPENAI_API_KEY`` do not.
"""

import re
from collections.abc import Mapping
from typing import Any

MASK = "**********"

_SECRET_NAME = re.compile(
    r"""(.*[_-])?(
        api[_-]?keys? | secret | secrets | secret[_-]?key | private[_-]?key | access[_-]?key
        | password | passwd | passphrase | credentials?
        | (hf|hub|api|auth|access|bearer|refresh|github|gitlab|wandb|session|server)[_-]?token
    ) | token | authorization | cookie""",
    re.VERBOSE | re.IGNORECASE,
)
_USER_IN_URL = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]*://)[^\s/@]+@", re.IGNORECASE)
_ASSIGNMENT = re.compile(r"(?P<name>\w[\w.-]*)=(?P<value>\S+)")


def is_secret_name(name: str) -> bool:
    """Whether a setting of this name holds a secret."""
    return _SECRET_NAME.fullmatch(name) is not None


def redact(value: Any, *, in_commands: bool = False) -> Any:
    """A copy of plain data with secrets masked; what was given is not changed.

    Masked are values under a secret's name (None stays None: it says that none was given) and
    whatever stands before the ``@`` of a URL.

    Args:
        in_commands: Also mask ``name=value`` inside texts, as in ``--set model.api_key=…``.
    """
    if isinstance(value, Mapping):
        return {
            key: MASK
            if is_secret_name(str(key)) and item is not None
            else redact(item, in_commands=in_commands)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [redact(item, in_commands=in_commands) for item in value]
    if not isinstance(value, str):
        return value
    text = _USER_IN_URL.sub(rf"\g<scheme>{MASK}@", value)
    return _ASSIGNMENT.sub(_without_secret, text) if in_commands else text


def _without_secret(assignment: re.Match[str]) -> str:
    is_secret = is_secret_name(assignment["name"].rpartition(".")[2])
    return f"{assignment['name']}={MASK}" if is_secret else assignment[0]
