"""The records that all other packages exchange."""

from corral.records.episode import Episode, Group, Outcome, Sample, Task, ToolCounts
from corral.records.images import ModelImage, PlacedImage
from corral.records.messages import MalformedCall, Message, ParsedTurn, Role, ToolCall
from corral.records.sampling import Finish, Sampled, SamplingParams
from corral.records.transcript import Span, SpanKind, TokenRow, Transcript

__all__ = [
    "Episode",
    "Finish",
    "Group",
    "MalformedCall",
    "Message",
    "ModelImage",
    "Outcome",
    "ParsedTurn",
    "PlacedImage",
    "Role",
    "Sample",
    "Sampled",
    "SamplingParams",
    "Span",
    "SpanKind",
    "Task",
    "TokenRow",
    "ToolCall",
    "ToolCounts",
    "Transcript",
]
