"""Whether a chat template writes what a message says, or leaves it out without a word."""

from collections.abc import Callable, Sequence
from typing import Any, cast

from corral.chat.messages import role_remedy
from corral.errors import TemplateError
from corral.records import Message

PLAYED_ROLES = ("user", "assistant", "tool")
"""Those without which nothing can be played: every template writes them."""

_MARK = "7391846520"
"""Digits: there are templates that change the case of what they write."""

Written = set[tuple[str, bool]]
"""Roles that were found written: at the beginning of a conversation, or later."""


def remedy_of(roles: Sequence[str]) -> str:
    """What to do about the first role that a template may not know, after a space; else nothing."""
    other = next((role for role in roles if role not in (*PLAYED_ROLES, "system")), None)
    return f" {role_remedy(other)}" if other else ""


def check_written(
    messages: Sequence[Message], render: Callable[[Sequence[Message]], str], known: Written
) -> None:
    """Check that every message leaves a trace, each role where it is seen first.

    Args:
        render: What the template makes of messages.
        known: What was found before; is added to.

    Raises:
        TemplateError: The template leaves a message out, or fails on its role.
    """
    for index, message in enumerate(messages):
        role, is_first = str(message["role"]), index == 0
        if role in PLAYED_ROLES or (role, is_first) in known:
            continue
        marked = [*messages]
        marked[index] = cast("Message", {**cast("dict[str, Any]", message), "content": _MARK})
        if _MARK not in render(marked):
            where = "" if is_first else ", where it is not the first message"
            raise TemplateError(
                f"The chat template leaves out messages of role {role!r}{where} (here message "
                f"{index}), so the model would not see them. {role_remedy(role)}"
            )
        known.add((role, is_first))
