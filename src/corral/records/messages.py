"""Chat messages and the tool calls inside them.

Messages are plain dictionaries in the shape every chat template and every reward function of the
field expects; the typed parts are what Corral itself reasons about.
"""

from dataclasses import dataclass
from typing import Any, Literal, NotRequired, TypedDict

Role = Literal["system", "user", "assistant", "tool"]


class Message(TypedDict):
    """One chat message."""

    role: Role
    content: Any
    """Text, or a list of content blocks."""
    reasoning_content: NotRequired[str]
    """What the model thought before it spoke; assistant messages only."""
    tool_calls: NotRequired[list[dict[str, Any]]]
    """``{"type": "function", "function": {"name": ..., "arguments": {...}}}``, assistant only."""
    name: NotRequired[str]
    """The tool that answers; tool messages only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A well-formed request to run one tool."""

    name: str
    arguments: dict[str, Any]

    def as_message_part(self) -> dict[str, Any]:
        """The call as it stands in ``Message["tool_calls"]``."""
        return {"type": "function", "function": {"name": self.name, "arguments": self.arguments}}


@dataclass(frozen=True, slots=True, kw_only=True)
class MalformedCall:
    """Something that was meant as a tool call and cannot be executed."""

    text: str
    """What the model wrote, as it wrote it."""
    error: str
    """One sentence for the model: what is wrong and what a call looks like."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedTurn:
    """What one sampled assistant turn says, in the order it says it."""

    content: str
    """Visible text outside reasoning and calls."""
    reasoning: str | None
    calls: tuple[ToolCall | MalformedCall, ...]

    def as_message(self) -> Message:
        """The assistant message this turn stands for; malformed calls stay in the content."""
        broken = [call.text for call in self.calls if isinstance(call, MalformedCall)]
        message: Message = {
            "role": "assistant",
            "content": "\n".join(part for part in [self.content, *broken] if part),
        }
        if self.reasoning is not None:
            message["reasoning_content"] = self.reasoning
        good = [call.as_message_part() for call in self.calls if isinstance(call, ToolCall)]
        if good:
            message["tool_calls"] = good
        return message
