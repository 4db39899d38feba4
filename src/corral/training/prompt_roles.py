"""Rows whose prompt has messages that the chat template leaves out, found before one is played."""

from collections.abc import Mapping, Sequence
from typing import Any

from corral.chat import ChatFormat
from corral.chat.messages import messages_of
from corral.env import ToolSet
from corral.errors import TemplateError
from corral.training.picture_table import PictureTable


def check_prompt_roles(
    rows: Sequence[Mapping[str, Any]],
    tools: Mapping[str | None, ToolSet],
    chat: ChatFormat,
    *,
    name: str = "train_dataset",
) -> None:
    """Check that every role in these prompts is written; see :mod:`corral.chat.written`.

    Args:
        tools: What a task shows, by the name of its environment; under None for all others.
        name: What the rows are called in errors.

    Raises:
        TemplateError: One is not, with the number of its row.
    """
    listed = rows.without_columns() if isinstance(rows, PictureTable) else rows
    for index, row in enumerate(listed):
        own = tools[None if None in tools else row.get("environment")]
        try:
            chat.renderer.check_written(messages_of(row.get("prompt")), tools=own.schemas)
        except TemplateError as error:
            raise TemplateError(f"{name}[{index}]: {error}") from error
