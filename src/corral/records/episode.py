"""Tasks, episodes, groups and the samples they become.

``Task -> Episode -> Group -> Sample``: each is made once, by the stage named in its docstring, and
never changed afterwards.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from corral.records.images import PlacedImage
from corral.records.messages import Message
from corral.records.transcript import Transcript


class Outcome(StrEnum):
    """How an episode ended."""

    FINISHED = "finished"
    """The model answered without calling a tool."""
    STOPPED_BY_ENVIRONMENT = "stopped_by_environment"
    """The environment said it is done and the run asked to stop there."""
    OUT_OF_TOKENS = "out_of_tokens"
    """A turn was cut by a token limit, or the next tool result did not fit the episode's budget."""
    OUT_OF_TURNS = "out_of_turns"
    """The limit on rounds of tool calls was reached."""
    TIMED_OUT = "timed_out"
    """The episode took longer than its limit in seconds; what it did until then is scored."""
    ENVIRONMENT_FAULT = "environment_fault"
    """The user's own code failed outside a tool call (in ``reset`` or ``get_reward``), or the
    prompt it made does not fit into the model's context."""
    INFRASTRUCTURE_FAULT = "infrastructure_fault"
    """Something beneath the environment failed; retried, and never scored."""

    def is_fault(self) -> bool:
        """Whether the episode says nothing about the model, and so must leave its group."""
        return self in (Outcome.ENVIRONMENT_FAULT, Outcome.INFRASTRUCTURE_FAULT)

    def is_truncated(self) -> bool:
        """Whether a limit, not the model or the environment, ended the episode."""
        return self in (Outcome.OUT_OF_TOKENS, Outcome.OUT_OF_TURNS, Outcome.TIMED_OUT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One row of data to play: made by a data source."""

    index: int
    """Position in the data; with ``seed`` it names the task."""
    prompt: tuple[Message, ...]
    columns: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The row as given, ``prompt`` included: what ``reset`` and reward functions receive."""
    environment: str | None = None
    """Which of several environments plays it; None when there is one or none."""
    seed: int = 0
    """From (run seed, step, task): the root of every random choice made while playing it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCounts:
    """What became of the tool calls of an episode."""

    calls: int = 0
    """Attempted calls, malformed ones included."""
    failures: int = 0
    """Calls answered with an error: malformed, unknown tool, bad arguments, tool raised."""
    malformed: int = 0
    """Calls that could not be parsed."""

    def has_success(self) -> bool:
        """Whether at least one call was executed without an error."""
        return self.calls > self.failures


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """One played task: made by the rollout. Holds data only, never the environment itself."""

    task: Task
    member: int
    """Position in its group."""
    messages: tuple[Message, ...]
    """The whole conversation, prompt included."""
    transcript: Transcript
    outcome: Outcome
    turns: int
    """Sampled assistant turns."""
    tools: ToolCounts = ToolCounts()
    rewards: Mapping[str, float | None] = field(default_factory=dict[str, float | None])
    """By reward name; None where that reward does not apply."""
    reward: float | None = None
    """Weighted sum of ``rewards``; None when none applies or the episode is a fault."""
    seconds: Mapping[str, float] = field(default_factory=dict[str, float])
    """Wall time by part: ``reset``, ``sample``, ``tools``, ``reward``, ``total``."""
    metrics: Mapping[str, float] = field(default_factory=dict[str, float])
    """Numbers the environment reports about the episode (its ``metrics`` attribute)."""
    error: str | None = None
    """What failed, when the outcome is a fault."""
    completion_start: int = 0
    """Index in ``messages`` of the first message after the prompt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The episodes of one task that are compared with each other: made by the rollout."""

    task: Task
    episodes: tuple[Episode, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One training row with its advantage: made by the advantage step."""

    ids: tuple[int, ...]
    loss_mask: tuple[int, ...]
    logprobs: tuple[float, ...]
    """Sampling logprobs of trained tokens, 0.0 elsewhere."""
    advantage: float
    version: int
    """Oldest weight version among the trained tokens."""
    episode: tuple[int, int]
    """(group of the generation, member) it comes from."""
    is_truncated: bool = False
    images: tuple[PlacedImage, ...] = ()
    """Images among ``ids``, in order."""

    def trained_tokens(self) -> int:
        """How many tokens the loss looks at."""
        return sum(self.loss_mask)
