"""What a row of data says, whichever of the usual shapes its columns have."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from corral.chat.messages import SHAREGPT_ROLES, check_message, role_remedy
from corral.chat.pictures import has_image
from corral.errors import UsageError
from corral.records import Message
from corral.training.image_columns import images_of, with_images

_HOLE_KEYS = ("tool_calls", "name", "tool_call_id", "reasoning_content")
"""Keys of a message that say nothing where they are None: tables have them in every row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowShape:
    """A row, read: a conversation, a text, or ids."""

    described: str
    """What the row has, for errors."""
    messages: tuple[Message, ...] = ()
    prompt_length: int = 0
    """How many of the messages are the prompt, where the row has a completion."""
    tools: list[dict[str, Any]] | None = None
    template_options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    prompt: str | None = None
    """Text before the completion."""
    completion: str = ""
    """The text, or what follows the prompt."""
    pictures: tuple[Any, ...] = ()
    """What the placeholders of a text stand for; messages have theirs in blocks."""
    has_completion: bool = False
    ids: tuple[int, ...] | None = None
    mask: tuple[int, ...] = ()

    @property
    def is_conversational(self) -> bool:
        """Whether a chat template writes it."""
        return bool(self.messages)

    @property
    def has_images(self) -> bool:
        """Whether there is a picture anywhere."""
        return bool(self.pictures) or any(map(has_image, self.messages))

    @property
    def uses_tools(self) -> bool:
        """Whether tools are listed, called or heard."""
        return bool(self.tools) or any(
            message["role"] == "tool" or message.get("tool_calls") for message in self.messages
        )


def read_row(row: Mapping[str, Any], text_field: str) -> RowShape:
    """Read a row by its columns.

    Args:
        text_field: The column of plain text.

    Raises:
        UsageError: No column to learn from, or one that holds something else than it should.
    """
    columns = {name: value for name, value in row.items() if value is not None}
    pictures = images_of(columns)
    if "input_ids" in columns:
        if pictures:
            raise UsageError(
                "'input_ids' beside images, which are read with the text that they stand in: give "
                "'messages' with images, or leave them out."
            )
        return _ids_row(columns)
    if "messages" in columns:
        return _conversation(columns, columns["messages"], "messages")
    if "conversations" in columns:
        return _conversation(columns, columns["conversations"], "conversations")
    if "prompt" in columns and "completion" in columns:
        return _completion_row(columns)
    if text_field in columns:
        text = columns[text_field]
        if not isinstance(text, str):
            raise UsageError(f"{text_field}={text!r:.60} is no text.")
        return RowShape(described=f"{text_field!r}", completion=text, pictures=tuple(pictures))
    raise UsageError(_nothing_to_learn(row, text_field))


def _nothing_to_learn(row: Mapping[str, Any], text_field: str) -> str:
    """What is wrong with a row that has no column to learn from, and the remedy."""
    known = ("messages", "conversations", "prompt", "completion", text_field)
    missing = [name for name in known if name in row and row[name] is None]
    if missing:
        (what, have) = ("is", missing[0]) if len(missing) == 1 else ("are", ", ".join(missing))
        return (
            f"{have} {what} null, so there is nothing to learn from. Leave such rows out: "
            f"[row for row in rows if row[{missing[0]!r}] is not None]."
        )
    told = (
        f"the columns {sorted(row)} can't be learned from: give 'messages', or 'prompt' and "
        f"'completion', or {text_field!r} (dataset_text_field names that one)."
    )
    if "instruction" in row and "output" in row:
        asked = 'row["instruction"]'
        if "input" in row:
            asked = '(row["instruction"] + "\\n" + (row["input"] or "")).strip()'
        told += (
            " These are Alpaca's columns; as messages: "
            f'[{{"prompt": [{{"role": "user", "content": {asked}}}], "completion": '
            '[{"role": "assistant", "content": row["output"]}]} for row in rows].'
        )
    elif "prompt" in row:
        told += " Rows with a prompt alone are for GRPO, where the model answers it."
    return told


def _ids_row(columns: Mapping[str, Any]) -> RowShape:
    ids = tuple(int(token) for token in columns["input_ids"])
    mask = [1] * len(ids)
    if "labels" in columns:
        labels = [int(label) for label in columns["labels"]]
        mask = [int(label >= 0) for label in labels]
        if len(labels) != len(ids) or any(
            label >= 0 and label != token for label, token in zip(labels, ids, strict=False)
        ):
            raise UsageError("labels must be as many as input_ids, each -100 or the id itself.")
    for name in ("completion_mask", "assistant_masks"):
        given = list(columns.get(name, mask))
        if len(given) != len(ids):
            raise UsageError(f"{name} has {len(given)} entries for {len(ids)} input_ids.")
        mask = [int(one and other) for one, other in zip(mask, given, strict=True)]
    return RowShape(described="'input_ids'", ids=ids, mask=tuple(mask), has_completion=True)


def _conversation(columns: Mapping[str, Any], value: Any, name: str) -> RowShape:
    messages = read_messages(value, name)
    return RowShape(
        described=f"{name!r}",
        messages=tuple(with_images(messages, images_of(columns))),
        tools=read_tools(columns.get("tools")),
        template_options=_json_of(columns.get("chat_template_kwargs"), dict, {}),
    )


def _completion_row(columns: Mapping[str, Any]) -> RowShape:
    prompt, completion = columns["prompt"], columns["completion"]
    if isinstance(prompt, str) and isinstance(completion, str):
        return RowShape(
            described="a text prompt",
            prompt=prompt,
            completion=completion,
            pictures=tuple(images_of(columns)),
            has_completion=True,
        )
    if isinstance(prompt, str) or isinstance(completion, str):
        raise UsageError(
            "'prompt' and 'completion' must both be text, or both lists of messages: one is a "
            f"{type(prompt).__name__}, the other a {type(completion).__name__}."
        )
    asked = read_messages(prompt, "prompt")
    messages = [*asked, *read_messages(completion, "completion")]
    return RowShape(
        described="'prompt' and 'completion'",
        messages=tuple(with_images(messages, images_of(columns))),
        prompt_length=len(asked),
        tools=read_tools(columns.get("tools")),
        template_options=_json_of(columns.get("chat_template_kwargs"), dict, {}),
        has_completion=True,
    )


def read_messages(value: Any, name: str) -> list[Message]:
    """The messages of a column: a list of mappings, one message alone, or the JSON of either.

    ``from`` and ``value`` count as ``role`` and ``content``; keys that are None are left out.
    """
    value = _json_of(value, (list, dict), [])
    if isinstance(value, Mapping):
        value = [value]
    if not isinstance(value, Sequence) or not value:
        raise UsageError(f"{name}={value!r:.60} is no list of messages.")
    return [_message(one, f"{name}[{place}]") for place, one in enumerate(value)]


def read_tools(value: Any) -> list[dict[str, Any]] | None:
    """The tool schemas of a column: a list of schemas (each may be JSON text), or its JSON."""
    value = _json_of(value, list, None)
    if not value:
        return None
    return [_json_of(one, dict, {}) for one in value]


def without_holes(value: Any) -> Any:
    """Data of a table without the None that a table puts where rows have different keys."""
    if isinstance(value, Mapping):
        return {
            key: without_holes(item)
            for key, item in value.items()
            if item is not None or key == "content"
        }
    if isinstance(value, list | tuple):
        return [without_holes(item) for item in value]
    return value


def _message(value: Any, place: str) -> Message:
    if not isinstance(value, Mapping):
        check_message(value, place)
    message = dict(value)
    if message.get("from") in SHAREGPT_ROLES:
        raise UsageError(
            f"{place} is from {message['from']!r}. {role_remedy(str(message['from']))}"
        )
    for theirs, ours in (("from", "role"), ("value", "content")):
        if theirs in message:
            message[ours] = message.pop(theirs)
    message = {k: v for k, v in message.items() if v is not None or k not in _HOLE_KEYS}
    check_message(message, place)
    return cast(Message, {"content": None, **message})


def _json_of(value: Any, kinds: Any, default: Any) -> Any:
    """The value, or what its text says; ``default`` for None."""
    if value is None or value == "":
        return default
    if not isinstance(value, str):
        return value
    try:
        read = json.loads(value)
    except ValueError as error:
        raise UsageError(f"{value!r:.60} is no JSON: {error}.") from error
    if not isinstance(read, kinds):
        raise UsageError(f"{value!r:.60} is JSON of something else than is asked for here.")
    return read
