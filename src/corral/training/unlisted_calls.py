"""Conversations that call tools which they do not list, told once.

Who learns them learns to call what it is not told of. Some data does so on purpose (its system
message describes the tools), so this is no error.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from corral.training.raw_rows import RowShape

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class UnlistedCalls:
    """Tells of the first rows that are found, and then no more."""

    has_told: bool = False

    def look_at(self, shapes: Mapping[int, RowShape], name: str) -> None:
        """Warn if any of these rows, by their number, calls a tool that it does not list."""
        if self.has_told:
            return
        found = {index: tool for index, shape in shapes.items() if (tool := unlisted_call(shape))}
        if not found:
            return
        self.has_told = True
        index, tool = next(iter(found.items()))
        listed = ", ".join(map(repr, _listed(shapes[index]))) or "none"
        logger.warning(
            "%s[%d] calls the tool %r and lists %s%s. The model learns to call what it is not told "
            "of: give the column `tools` the schemas that are shown when it is used, such as "
            "corral.env.prepare(Class).tools.schemas.",
            *(name, index, tool, listed),
            f" ({len(found)} of {len(shapes)} rows do the like)" if len(shapes) > 1 else "",
        )


def unlisted_call(shape: RowShape) -> str | None:
    """The first tool that a conversation calls and does not list; None: there is none."""
    listed = _listed(shape)
    calls = [call for message in shape.messages for call in message.get("tool_calls", ())]
    return next((name for name in map(_name, calls) if name not in listed), None)


def _listed(shape: RowShape) -> Sequence[str]:
    return [_name(tool) for tool in shape.tools or ()]


def _name(schema: Mapping[str, Any]) -> str:
    """Of a call or of a tool, with or without ``function`` around it."""
    return str((schema.get("function") or schema).get("name"))
