"""Plays many episodes at the same time against one engine."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from corral.chat.format import ChatFormat
from corral.engines.protocol import Engine
from corral.env import EnvironmentKind, ToolSet, tools_of
from corral.errors import EnvironmentFault, InfrastructureFault, UsageError
from corral.records import Episode, Group, SamplingParams, Task
from corral.rollout.attempts import Attempts, Place, Result
from corral.rollout.episode import Rules, Seat
from corral.rollout.limits import Limits
from corral.rollout.played import PlayedGroup
from corral.rollout.pool import EnvironmentPool
from corral.rollout.tasks_together import run_together
from corral.rollout.tool_calls import UNNAMED

_logger = logging.getLogger(__name__)


class Player:
    """Plays groups of episodes; owns the environments they are played in.

    Each episode is its own asyncio task: a slow tool delays its own episode and no other. An
    episode whose infrastructure fails starts again in a fresh environment, with the same seeds and
    an empty transcript, up to ``retries`` times; then it is an INFRASTRUCTURE_FAULT. One whose
    environment raises in ``reset`` or ``get_reward`` is an ENVIRONMENT_FAULT and is not retried.
    Faults stay in ``Group.episodes`` for the record, without a reward. Wrong use, and whatever else
    is no fault, ends ``play`` at once: the other episodes are cancelled and environments closed.

    Environments live from call to call: the i-th episode of a kind (in the order of tasks, then
    members) always plays in the i-th instance. One call runs at a time::

        player = Player(engine, chat, kinds={None: prepare(GuessNumber)}, limits=Limits(turns=8))
        groups = await player.play(tasks, members=8)
        scored = await score(groups, reward_functions(my_reward))
        await player.aclose()
    """

    def __init__(
        self,
        engine: Engine,
        chat: ChatFormat,
        *,
        kinds: Mapping[str | None, EnvironmentKind] | None = None,
        tools: Sequence[Callable[..., Any]] = (),
        limits: Limits | None = None,
        sampling: SamplingParams | None = None,
        stop_when_done: bool = False,
        retries: int = 2,
        max_concurrent: int | None = None,
        needs_an_episode: bool = True,
    ) -> None:
        """
        Args:
            kinds: By name, as the data's ``environment`` column says; or one kind under None, which
                plays every task. Tools that the run adds are in each kind already (see
                :func:`corral.env.prepare`).
            tools: Plain functions for tasks without an environment.
            sampling: How turns are sampled; ``max_new_tokens`` and ``seed`` are set for each turn,
                and the stop ids of ``chat`` are added.
            max_concurrent: Episodes played at the same time; None for all.
            needs_an_episode: Whether environments that fail every episode of a call are an error,
                or data as well. When all infrastructure is down, it is always one.
        """
        self._kinds = dict(kinds or {})
        if len(self._kinds) > 1 and None in self._kinds:
            raise UsageError("Several environments each need a name; one of them has none.")
        if retries < 0 or (max_concurrent is not None and max_concurrent < 1):
            raise UsageError(
                f"retries={retries} must be 0 or more, max_concurrent={max_concurrent} 1 or more."
            )
        self._pools = {name: EnvironmentPool(kind) for name, kind in self._kinds.items()}
        self.tools = tools_of(tools)
        """Those of tasks without an environment."""
        _check_kinds_have(self.tools, self._kinds)
        self._retries = retries
        self._max_concurrent = max_concurrent
        self._needs_an_episode = needs_an_episode
        self._is_playing = False
        self._unfit_tools: set[str] = set()
        """Tools of which is told already that a result did not fit."""
        self._rules = Rules(
            engine=engine,
            chat=chat,
            limits=limits or Limits(),
            sampling=sampling or SamplingParams(max_new_tokens=1, stop_ids=frozenset()),
            stop_when_done=stop_when_done,
        )

    async def play(
        self,
        tasks: Sequence[Task],
        members: int,
        on_episode: Callable[[Episode], None] | None = None,
        *,
        sampling: SamplingParams | None = None,
        limits: Limits | None = None,
    ) -> list[PlayedGroup]:
        """Play each task ``members`` times; groups and members come back in the order asked.

        Args:
            on_episode: Called on the event loop with each episode as it ends, faults included. Its
                ``rewards`` have the environment's own reward; the others are not known yet.
            sampling: Instead of the player's, such as greedy for an evaluation.
            limits: Instead of the player's.

        Raises:
            UsageError: Something is set up wrongly.
            EnvironmentFault: All episodes failed in the environment: a bug, with the first cause
                (not with ``needs_an_episode=False``).
            InfrastructureFault: All episodes failed, some of them beneath the environment.
        """
        if members < 1:
            raise UsageError(f"members={members}: a group has at least one episode.")
        if self._is_playing:
            raise UsageError("This player is playing already: await that call, or make another.")
        rules = replace(
            self._rules,
            sampling=sampling or self._rules.sampling,
            limits=limits or self._rules.limits,
        )
        self._is_playing = True
        try:
            places = self._places(tasks, members)
            attempts = self._attempts(rules, len(places), on_episode)
            results = await run_together([attempts.play(place) for place in places])
        except BaseException:
            await self.aclose()
            raise
        finally:
            self._is_playing = False
        _raise_if_all_failed(results, spares_environments=not self._needs_an_episode)
        _tell_of_faults(results)
        self._tell_of_unfit(results, rules)
        return _groups(tasks, members, places, results)

    async def aclose(self) -> None:
        """Close all environments; a later call to ``play`` makes new ones."""
        for pool in self._pools.values():
            await pool.aclose()

    def _places(self, tasks: Sequence[Task], members: int) -> list[Place]:
        taken: dict[str | None, int] = {}
        places: list[Place] = []
        for task in tasks:
            name = self._kind_name(task)
            kind = self._kinds.get(name)
            row = {key: value for key, value in task.columns.items() if not _routes(key, name)}
            for member in range(members):
                number = taken[name] = taken.get(name, -1) + 1
                seat = Seat(
                    task=task,
                    member=member,
                    kind=kind,
                    tools=kind.tools if kind is not None else self.tools,
                    row=row,
                )
                places.append(Place(seat=seat, pool=self._pools.get(name), number=number))
        return places

    def _kind_name(self, task: Task) -> str | None:
        if not self._kinds or None in self._kinds:
            return None
        if task.environment not in self._kinds:
            names = ", ".join(sorted(map(repr, self._kinds)))
            raise UsageError(
                f"environment={task.environment!r} of task {task.index} is not among the "
                f"environments: {names}. Name one of them in the data's `environment` column."
            )
        return task.environment

    def _tell_of_unfit(self, results: Sequence[Result], rules: Rules) -> None:
        for name, characters in (result.unfit for result in results if result.unfit is not None):
            if name in self._unfit_tools:
                continue
            self._unfit_tools.add(name)
            what = (
                "An answer to a malformed call"
                if name == UNNAMED
                else f"A result of the tool {name!r}"
            )
            _logger.warning(
                "%s has %d characters, for which its episode had no room (an episode has %d tokens "
                "in all, and the model's context %d). The episode ended there, and the model has "
                "not seen it. Told once for each tool.",
                *(what, characters, rules.limits.episode_tokens, rules.engine.max_context()),
            )

    def _attempts(
        self, rules: Rules, places: int, on_episode: Callable[[Episode], None] | None
    ) -> Attempts:
        return Attempts(
            rules=rules,
            retries=self._retries,
            room=asyncio.Semaphore(self._max_concurrent or max(places, 1)),
            construction=asyncio.Lock(),
            on_episode=on_episode,
        )


def _check_kinds_have(tools: ToolSet, kinds: Mapping[str | None, EnvironmentKind]) -> None:
    for kind in kinds.values():
        missing = [name for name in tools.names if name not in kind.tools.names]
        if missing:
            raise UsageError(
                f"Tool {missing[0]!r} would not be offered in {kind.name}: add it when the "
                "environment is prepared, with prepare(factory, standalone=tools)."
            )


def _routes(column: str, kind_name: str | None) -> bool:
    """Whether a column only says which of several environments plays the row."""
    return column == "environment" and kind_name is not None


def _groups(
    tasks: Sequence[Task], members: int, places: Sequence[Place], results: Sequence[Result]
) -> list[PlayedGroup]:
    groups: list[PlayedGroup] = []
    for index, task in enumerate(tasks):
        own = results[index * members : (index + 1) * members]
        groups.append(
            PlayedGroup(
                group=Group(task=task, episodes=tuple(result.episode for result in own)),
                environments=tuple(result.environment for result in own),
                is_text=places[index * members].seat.text is not None,
            )
        )
    return groups


def _tell_of_faults(results: Sequence[Result]) -> None:
    faults = [result for result in results if isinstance(result.cause, EnvironmentFault)]
    if faults:
        first = faults[0].episode
        _logger.warning(
            "%d of %d episodes leave their groups. The first, task %d, member %d: %s",
            *(len(faults), len(results), first.task.index, first.member, first.error),
        )


def _raise_if_all_failed(results: Sequence[Result], *, spares_environments: bool) -> None:
    """Stop where going on would only fail again: nothing was played that could be learned from."""
    causes = [result.cause for result in results if result.cause is not None]
    if not results or len(causes) < len(results):
        return
    beneath = [cause for cause in causes if not isinstance(cause, EnvironmentFault)]
    if spares_environments and not beneath:
        return
    first, kind = (beneath[0], InfrastructureFault) if beneath else (causes[0], EnvironmentFault)
    raise kind(f"All {len(causes)} episodes failed. The first: {first}") from first
