"""What ends an episode from outside, and in which order it is checked.

After each sampled turn, in this order; the first that applies decides the outcome:

1. The turn was cut (``Finish.LENGTH``): OUT_OF_TOKENS. None of its calls is executed.
2. It calls no tool: FINISHED.
3. ``turns`` rounds of tools have run already: OUT_OF_TURNS. The calls stay unanswered.
4. Not even one token of a tool result fits: OUT_OF_TOKENS, and the environment is not stepped.

After its calls have been answered:

5. The environment is done and the run stops there: STOPPED_BY_ENVIRONMENT. The results stay in the
   messages; their tokens join the transcript where they fit (nothing follows them).
6. The results do not fit: OUT_OF_TOKENS. They leave the messages again, so that messages and tokens
   tell the same story and the assistant message is the last one.
7. The results fit exactly: OUT_OF_TOKENS. They stay, but there is no token left to answer with.

``seconds`` is watched all the time and interrupts whatever the episode waits for: TIMED_OUT. The
turn or the tool results being waited for never enter the episode, and what it did until then is
scored.
"""

from dataclasses import dataclass

from corral.errors import UsageError

LONGEST_TOKEN = 256
"""Characters; the longest tokens of the known vocabularies are runs of 128 spaces."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long an episode may become; None is no limit."""

    turns: int | None = None
    """Rounds of tool execution N: at most N rounds and N + 1 sampled turns."""
    turn_tokens: int | None = None
    """Tokens of one sampled turn."""
    episode_tokens: int = 512
    """Tokens after the prompt: all sampled turns and all tool results together."""
    seconds: float | None = None
    """Wall time of an episode after ``reset``; ``reset`` and ``get_reward`` may each take as long
    again before they count as hung."""

    def __post_init__(self) -> None:
        problems = [
            (self.turns is not None and self.turns < 0, "turns", "0 or more, or None"),
            (self.turn_tokens is not None and self.turn_tokens < 1, "turn_tokens", "1 or more"),
            (self.episode_tokens < 1, "episode_tokens", "1 or more"),
            (self.seconds is not None and not self.seconds > 0, "seconds", "above 0, or None"),
        ]
        for is_wrong, name, legal in problems:
            if is_wrong:
                raise UsageError(f"limits: {name}={getattr(self, name)!r} must be {legal}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenBudget:
    """The tokens one episode may still use: its own limits within the model's context."""

    limits: Limits
    prompt_length: int
    max_context: int
    used: int = 0
    """Tokens after the prompt so far."""

    def fits(self, count: int) -> bool:
        """Whether a tool result of ``count`` tokens may be appended.

        It may fill ``episode_tokens`` exactly, but must leave one token of the model's context.
        """
        used = self.used + count
        is_within_episode = used <= self.limits.episode_tokens
        return is_within_episode and self.prompt_length + used < self.max_context

    def is_beyond(self, characters: int) -> bool:
        """Whether a text is so long that it need not be tokenised to know that it does not fit.

        Ten megabytes take seconds, in which no other episode goes on.
        """
        return not self.fits(characters // LONGEST_TOKEN)

    def next_turn(self) -> int:
        """How many tokens the next turn may sample; 0 or less when there is no room."""
        room = min(
            self.limits.episode_tokens - self.used,
            self.max_context - self.prompt_length - self.used,
        )
        return room if self.limits.turn_tokens is None else min(room, self.limits.turn_tokens)
