"""An engine without a model, for tests and dry runs: it says what it is told to say."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from corral.errors import InfrastructureFault, UsageError
from corral.records import Finish, PlacedImage, Sampled, SamplingParams

Script = Callable[[str, Sequence[int]], Sequence[int]] | Mapping[str, Sequence[Sequence[int]]]
"""``(key, prompt_ids) -> ids of the turn``, or the turns of each conversation in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedCall:
    """One call the engine got: what tests look at."""

    key: str
    prompt_ids: tuple[int, ...]
    params: SamplingParams


@dataclass(slots=True)
class ScriptedEngine:
    """Answers each call with a scripted turn, cut like a real engine would cut it.

    ::

        engine = ScriptedEngine(lambda key, prompt_ids: [5, 6, 2])
        engine = ScriptedEngine({"game-1": [[5, 2], [6, 2]]})
    """

    turns: Script
    context: int = 1 << 20
    """What ``max_context`` answers, and enforces."""
    delay_s: float = 0.0
    """How long each call takes."""
    fail_first: int = 0
    """How many calls, from the first, raise InfrastructureFault."""
    logprob: float = -0.5
    """Logprob of every token."""
    version: int = 0
    """Version of the weights that results claim."""
    calls: list[ScriptedCall] = field(default_factory=list)
    """Every call, failed ones included."""
    images: dict[str, tuple[PlacedImage, ...]] = field(default_factory=dict)
    """The images of the last call with each key that had some."""
    released: list[str] = field(default_factory=list)
    """Every released key."""
    _turns_of: dict[str, int] = field(default_factory=dict)

    async def sample(
        self, prompt_ids: Sequence[int], params: SamplingParams, *, key: str
    ) -> Sampled:
        """Return the scripted turn: up to the first stop id, ``max_new_tokens`` and the context."""
        room = self.context - len(prompt_ids)
        if not prompt_ids or room < 1:
            raise UsageError(
                f"The prompt has {len(prompt_ids)} tokens: it must have at least one, and leave "
                f"room in a context of {self.context}."
            )
        self.calls.append(ScriptedCall(key=key, prompt_ids=tuple(prompt_ids), params=params))
        call = len(self.calls)
        await asyncio.sleep(self.delay_s)
        if call <= self.fail_first:
            raise InfrastructureFault(f"scripted failure {call} of {self.fail_first}")
        ids, finish = _cut(self._next_turn(key, prompt_ids), params, room)
        logprobs = (self.logprob,) * len(ids)
        return Sampled(ids=ids, logprobs=logprobs, finish=finish, version=self.version)

    async def sample_with_images(
        self,
        prompt_ids: Sequence[int],
        params: SamplingParams,
        *,
        key: str,
        images: Sequence[PlacedImage],
    ) -> Sampled:
        """Return the scripted turn, and note the images."""
        self.images[key] = tuple(images)
        return await self.sample(prompt_ids, params, key=key)

    def release(self, key: str) -> None:
        """Note that the conversation is over."""
        self.released.append(key)

    def weights_changed(self, version: int) -> None:
        """Claim ``version`` from now on."""
        self.version = version

    def max_context(self) -> int:
        """How many tokens a conversation may have in all."""
        return self.context

    def _next_turn(self, key: str, prompt_ids: Sequence[int]) -> Sequence[int]:
        if not isinstance(self.turns, Mapping):
            return self.turns(key, prompt_ids)
        turn = self._turns_of.get(key, 0)
        script = self.turns.get(key, ())
        if turn >= len(script):
            raise UsageError(
                f"No turn {turn} is scripted for key {key!r}; it has {len(script)} turns."
            )
        self._turns_of[key] = turn + 1
        return script[turn]


def _cut(turn: Sequence[int], params: SamplingParams, room: int) -> tuple[tuple[int, ...], Finish]:
    """Cut a turn after its first stop id, or where its tokens run out."""
    limit = min(params.max_new_tokens, room)
    for index, token in enumerate(turn[:limit]):
        if token in params.stop_ids:
            return tuple(turn[: index + 1]), Finish.STOP
    return tuple(turn[:limit]), Finish.LENGTH
