"""What a message must have, wherever rows of data bring one."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from corral.errors import UsageError
from corral.records import Message

_EXAMPLE = '{"role": "user", "content": "Play."}'
_SAID_ELSEWHERE = ("tool_calls", "reasoning_content", "thinking")
"""What an assistant may say instead of content."""


def messages_of(prompt: object) -> list[Message]:
    """A conversation from what a data row has under ``prompt``: messages, text or nothing.

    Raises:
        UsageError: It is something else, or has a message that says nothing.
    """
    if prompt is None:
        return [{"role": "user", "content": ""}]
    if isinstance(prompt, str):
        return [{"role": "user", "content": prompt}]
    if not isinstance(prompt, Sequence):
        raise UsageError(
            f"prompt={prompt!r:.80}: give text, or a list of messages such as [{_EXAMPLE}]."
        )
    messages = cast("Sequence[object]", prompt)
    for place, message in enumerate(messages):
        check_message(message, f"prompt[{place}]")
    return [cast("Message", dict(cast("Mapping[str, Any]", message))) for message in messages]


def check_message(message: object, place: str) -> None:
    """Check that a message is a mapping that says who speaks, and what.

    An assistant may call tools or think instead of saying something. Empty text is something.

    Args:
        place: Where it stands, for errors.

    Raises:
        UsageError: It is not.
    """
    if not isinstance(message, Mapping):
        raise UsageError(f"{place} is {message!r:.80}: a message is a mapping such as {_EXAMPLE}.")
    fields = cast("Mapping[str, Any]", message)
    role, content = fields.get("role"), fields.get("content")
    if not isinstance(role, str):
        raise UsageError(
            f"{place} is {dict(fields)!r:.80}: a message needs a `role`, such as "
            f"{_EXAMPLE}.{_of_sharegpt(fields)}"
        )
    if content is not None and not isinstance(content, str | list):
        raise UsageError(
            f"{place} has content={content!r:.80}: give text, or a list of content blocks."
        )
    says_otherwise = role == "assistant" and any(map(fields.get, _SAID_ELSEWHERE))
    if content is None and not says_otherwise:
        raise UsageError(
            f"{place} of role {role!r} has no `content` (its keys: {', '.join(map(str, fields))})"
            f'. Give it, or leave the message out; "" says nothing.{_of_sharegpt(fields)}'
        )
    _check_calls(fields.get("tool_calls"), place)


def _check_calls(calls: object, place: str) -> None:
    is_list = isinstance(calls, list | tuple)
    if calls is None or (is_list and all(map(_is_call, cast("Sequence[object]", calls)))):
        return
    raise UsageError(
        f"{place} has tool_calls={calls!r:.80}: give a list of calls such as "
        '{"type": "function", "function": {"name": "guess", "arguments": {"n": 7}}}.'
    )


def _is_call(call: object) -> bool:
    if not isinstance(call, Mapping):
        return False
    fields = cast("Mapping[str, Any]", call)
    function = fields.get("function") or fields
    return isinstance(function, Mapping) and isinstance(
        cast("Mapping[str, Any]", function).get("name"), str
    )


def _of_sharegpt(fields: Mapping[str, Any]) -> str:
    if "from" not in fields or "value" not in fields:
        return ""
    return f" These are ShareGPT's keys; as messages: {SHAREGPT_AS_MESSAGES}."


SHAREGPT_AS_MESSAGES = (
    '[{"role": {"human": "user", "gpt": "assistant"}.get(m["from"], m["from"]), '
    '"content": m["value"]} for m in conversation]'
)
"""What makes messages of a conversation with ShareGPT's keys."""


SHAREGPT_ROLES = ("human", "gpt", "bing", "chatgpt", "bard")
"""Names of the speakers in such conversations that no chat template knows."""


def role_remedy(role: str) -> str:
    """What to do about a role that is not known where it stands: a sentence."""
    if role in SHAREGPT_ROLES:
        return f"ShareGPT calls them so; as messages: {SHAREGPT_AS_MESSAGES}."
    if role == "developer":
        return "Call it 'system', or use a template that has it."
    return "Use one of 'system', 'user', 'assistant' and 'tool', or a template that has this role."
