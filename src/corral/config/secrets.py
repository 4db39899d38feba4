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


def is_secret_name(name: str) -> bool:
    """Whether a setting of this name holds a secret."""
    return _SECRET_NAME.fullmatch(name) is not None


def redact(value: Any) -> Any:
    """A copy of plain data with secrets masked; what was given is not changed.

    Masked are values under a secret's name (None stays None: it says that none was given) and
    whatever stands before the ``@`` of a URL.
    """
    if isinstance(value, Mapping):
        return {
            key: MASK if is_secret_name(str(key)) and item is not None else redact(item)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [redact(item) for item in value]
    if isinstance(value, str):
        return _USER_IN_URL.sub(rf"\g<scheme>{MASK}@", value)
    return value
