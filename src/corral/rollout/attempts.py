"""Plays one episode in its place until an attempt is not lost to infrastructure."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count

from corral.errors import CorralError, EnvironmentFault, InfrastructureFault
from corral.records import Episode, Outcome, Transcript
from corral.rollout.episode import EpisodeRun, Rules, Seat
from corral.rollout.pool import EnvironmentPool

_logger = logging.getLogger(__name__)

FIRST_PAUSE_S = 0.5
"""Gives a server that is coming back a moment; doubled for each further attempt."""
LONGEST_PAUSE_S = 30.0
"""Where doubling ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A seat with the environment instance that belongs to it."""

    seat: Seat
    pool: EnvironmentPool | None
    """Where the instance is kept; None without an environment."""
    number: int
    """Which instance of the pool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What one place yields."""

    episode: Episode
    environment: object | None
    cause: CorralError | None
    """Why the episode is a fault."""
    unfit: tuple[str, int] | None = None
    """The tool whose result did not fit any more, and how many characters that has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempts:
    """How places are played in one call to play."""

    rules: Rules
    retries: int
    room: asyncio.Semaphore
    """Held while an episode is played."""
    construction: asyncio.Lock
    """Held while an environment is constructed."""
    on_episode: Callable[[Episode], None] | None

    async def play(self, place: Place) -> Result:
        """Play the episode of one place; whatever is no fault is raised."""
        async with self.room:
            result = await self._until_it_holds(place)
        if self.on_episode is not None:
            self.on_episode(result.episode)
        return result

    async def _until_it_holds(self, place: Place) -> Result:
        task, member = place.seat.task, place.seat.member
        attempt = 0
        while True:
            try:
                return await self._once(place)
            except InfrastructureFault as fault:
                attempt += 1
                _logger.warning(
                    "Task %d, member %d, attempt %d of %d: %s",
                    task.index,
                    member,
                    attempt,
                    self.retries + 1,
                    fault,
                )
                if place.pool is not None:
                    await place.pool.discard(place.number)
                if attempt > self.retries:
                    return _unplayed(place.seat, Outcome.INFRASTRUCTURE_FAULT, fault)
            await asyncio.sleep(min(FIRST_PAUSE_S * 2 ** (attempt - 1), LONGEST_PAUSE_S))

    async def _once(self, place: Place) -> Result:
        home = None
        if place.pool is not None:
            try:
                home = await place.pool.take(place.number, turn=self.construction)
            except EnvironmentFault as fault:
                return _unplayed(place.seat, Outcome.ENVIRONMENT_FAULT, fault)
        run = EpisodeRun(self.rules, place.seat, home, key=_next_key(place.seat))
        episode = await run.play()
        if place.pool is not None and run.is_environment_busy:
            place.pool.wear_out(place.number)
        environment = None if home is None else home.instance
        return Result(episode=episode, environment=environment, cause=run.fault, unfit=run.unfit)


_serials = count()
"""Tells conversations apart in an engine that several players share; nothing is drawn from it."""


def _next_key(seat: Seat) -> str:
    return f"{seat.task.index}/{seat.member}#{next(_serials)}"


def _unplayed(seat: Seat, outcome: Outcome, cause: CorralError) -> Result:
    """A fault of which nothing is kept but its cause."""
    episode = Episode(
        task=seat.task,
        member=seat.member,
        messages=seat.task.prompt,
        transcript=Transcript(),
        outcome=outcome,
        turns=0,
        error=str(cause),
        completion_start=len(seat.task.prompt),
    )
    return Result(episode=episode, environment=None, cause=cause)
