"""One episode of an environment of verifiers, whose model waits here for its turns."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any, Protocol

from corral.errors import EnvironmentFault, InfrastructureFault

Message = dict[str, Any]
"""A message as chat completions have it."""

_OWN_CODE = ("TaskError", "EnvError")
"""What verifiers calls failures of an environment's code; all others are of what it stands on."""
_UNSCORED = "scoring_timeout"


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """What an environment made of an episode."""

    reward: float
    """The sum of its rewards, each with its weight."""
    metrics: Mapping[str, float] = field(default_factory=dict[str, float])
    """Its metrics by name, and each reward as ``reward/NAME``."""


class Played(Protocol):
    """Where an episode is played."""

    env: Any
    """The environment, serving."""
    context: Any
    """What its model is."""
    seat: str
    """Which of its agents that model plays."""
    endpoint: Any
    """The `ModelEndpoint` that the context names."""
    timeout_s: float
    """For each step of the environment."""


class Episode:
    """A run of one task. All of it happens on the event loop of the stage.

    Its life is `begin`, `go_on` until there is nothing more to answer, then `score`; or `close`.
    """

    def __init__(self, stage: "Played", task: Any) -> None:
        self._stage, self._task = stage, task
        self._asked: asyncio.Queue[tuple[Any, asyncio.Future[Message | None]]] = asyncio.Queue()
        self._waiting: asyncio.Future[Message | None] | None = None
        self._has_stopped = False
        self._traces: list[str] = []
        self._run: asyncio.Task[Any] | None = None

    async def begin(self) -> dict[str, Any] | None:
        """Start; returns the first request to the model, or None if it is asked nothing."""
        stage = self._stage
        self._run = asyncio.create_task(
            stage.env.run_episode(self._task, stage.context, on_trace=self._watch)
        )
        return await self._next()

    async def go_on(self, message: Message | None) -> dict[str, Any] | None:
        """Answer the last request; returns the next one, or None at the end.

        Args:
            message: The model's turn; None for a model that says no more.

        Raises:
            InfrastructureFault: Nothing comes for too long.
        """
        self._has_stopped = self._has_stopped or message is None
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(message)
        request = await self._next()
        return request if message is not None or request is None else await self.go_on(None)

    async def ask(self, body: dict[str, Any]) -> Message | None:
        """Have the model's turn; called by the endpoint."""
        if self._has_stopped:
            return None
        turn: asyncio.Future[Message | None] = asyncio.get_running_loop().create_future()
        self._asked.put_nowait((body, turn))
        return await turn

    def score(self) -> Score:
        """What came of it, once it has ended.

        Raises:
            EnvironmentFault: The environment's own code failed.
            InfrastructureFault: Something else did.
        """
        assert self._run is not None
        assert self._run.done()
        played = self._run.result()
        own = [trace for trace in played.traces if trace.agent.name == self._stage.seat]
        if not self._stage.env.complete(played) or not own:
            raise _fault(played)
        if any(trace.stop_condition == _UNSCORED for trace in own):
            raise InfrastructureFault("The environment did not score its episode in time.")
        metrics: dict[str, float] = {}
        for trace in own:
            metrics |= {name: value for name, value in trace.metrics.items() if value is not None}
            rewards = {name: one for name, one in trace.rewards.items() if one is not None}
            metrics |= {f"reward/{name}": one.value for name, one in rewards.items()}
        return Score(reward=fmean(trace.reward for trace in own), metrics=metrics)

    async def close(self) -> None:
        """Break off what still runs; verifiers then ends the programs it has started."""
        if self._run is not None and not self._run.done():
            self._run.cancel()
            await asyncio.wait([self._run])
        for trace in self._traces:
            self._stage.endpoint.watchers.pop(trace, None)

    def _watch(self, trace: Any) -> None:
        self._traces.append(trace.id)
        self._stage.endpoint.watchers[trace.id] = self

    async def _next(self) -> dict[str, Any] | None:
        assert self._run is not None
        asking = asyncio.ensure_future(self._asked.get())
        try:
            await asyncio.wait(
                [asking, self._run],
                timeout=self._stage.timeout_s,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if asking.done():
                body, self._waiting = asking.result()
                return body
            if self._run.done():
                return None
        finally:
            asking.cancel()
        await self.close()
        raise InfrastructureFault(
            f"The environment did not go on within {self._stage.timeout_s:g} s."
        )


def _fault(played: Any) -> Exception:
    """The failure of an episode that is no result."""
    errors = [*played.errors, *(error for trace in played.traces for error in trace.errors)]
    if not errors:
        return EnvironmentFault("The environment ended without asking the model anything.")
    first = errors[0]
    kind = EnvironmentFault if first.type in _OWN_CODE else InfrastructureFault
    return kind(f"{first.type}: {first.message}")
