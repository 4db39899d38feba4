"""A whole run of the fuzzer over one way to write calls."""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from corral.env import prepare
from corral.records import Finish, Sampled, SamplingParams, Task
from corral.rollout import Limits, Player
from support.tool_fuzz.bench import DEEDS, PLACES, Bench, Deeds, plain
from support.tool_fuzz.formats import chat_formats
from support.tool_fuzz.judge import Verdicts, judge
from support.tool_fuzz.phrases import Phrases
from support.tool_fuzz.turns import Hostile, Turn

TURNS = 12
"""Most turns of one episode."""
TOGETHER = 24
"""Episodes played at the same time."""
_ENDLESS = 1 << 40


@dataclass
class HostileEngine:
    """Samples turns that no well-behaved model writes."""

    hostile: Hostile
    seed: str
    taken: dict[int, list[Turn]] = field(default_factory=dict[int, list[Turn]])

    async def sample(
        self, prompt_ids: Sequence[int], params: SamplingParams, *, key: str
    ) -> Sampled:
        place = int(key.split("/")[0])
        taken = self.taken.setdefault(place, [])
        deeds = PLACES[place]
        deeds.turn = len(taken)
        DEEDS.set(deeds)
        turn = self._turn(place, len(taken))
        stops = [at for at, token in enumerate(turn.ids) if token in params.stop_ids]
        if stops and stops[0] < len(turn.ids) - 1:  # an engine ends a turn at its first stop token
            is_due = turn.kind == "valid" or turn.finish is Finish.LENGTH
            allowed = turn.allowed if not is_due else None
            ids = turn.ids[: stops[0] + 1]
            turn = replace(turn, ids=ids, finish=Finish.STOP, allowed=allowed, is_due=False)
        taken.append(turn)
        logprobs = (-0.5,) * len(turn.ids)
        return Sampled(ids=turn.ids, logprobs=logprobs, finish=turn.finish, version=0)

    def release(self, key: str) -> None: ...

    def max_context(self) -> int:
        return _ENDLESS

    def _turn(self, place: int, number: int) -> Turn:
        if number >= TURNS - 1:
            return self.hostile.said("the last", "Enough.", random.Random(0), [], is_due=True)
        return self.hostile.turn(random.Random(f"{self.seed}/{place}/{number}"))


def run_fuzz(name: str, *, count: int, seed: int) -> Verdicts:
    """At least ``count`` hostile turns over one way to write calls, played as a run plays them."""
    phrases = Phrases.of(chat_formats()[name])
    seen = Verdicts()
    asyncio.run(_play(phrases, Hostile(phrases), count, f"{seed}/{name}", seen))
    return seen


async def _play(phrases: Phrases, hostile: Hostile, count: int, seed: str, seen: Verdicts) -> None:
    kind = prepare(Bench, standalone=[plain])
    engine = HostileEngine(hostile, seed)
    player = Player(
        engine,
        phrases.chat,
        kinds={None: kind},
        tools=[plain],
        limits=Limits(episode_tokens=_ENDLESS),
        retries=0,
    )
    first = 0
    while seen.turns.total() < count:
        places = range(first, first + TOGETHER)
        first += TOGETHER
        PLACES.clear()
        PLACES.update({place: Deeds() for place in places})
        engine.taken.clear()
        try:
            groups = await player.play([_task(place) for place in places], 1)
        except Exception as error:  # noqa: BLE001 - the finding of findings
            seen.wrong.append(f"{seed}: {type(error).__name__}: {error}"[:500])
            break
        for place, group in zip(places, groups, strict=True):
            (episode,) = group.group.episodes
            judge(episode, engine.taken[place], PLACES[place], phrases, seen)
    await player.aclose()


def _task(place: int) -> Task:
    return Task(
        index=place,
        prompt=({"role": "user", "content": "Play."},),
        columns={"place": place},
        seed=place,
    )
