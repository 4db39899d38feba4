"""An environment of verifiers as an environment class: its model is the one that plays here."""

import json
import threading
from collections.abc import Mapping
from typing import Any, ClassVar

from corral.env.signatures import ToolSpec
from corral.errors import EnvironmentFault, InfrastructureFault
from corral.worlds.calling import calling_methods
from corral.worlds.conversation import Shown, shown
from corral.worlds.verifiers.episode import Episode
from corral.worlds.verifiers.stage import Stage, loop


class VerifiersTasks:
    """A factory of environments that play the tasks of a taskset.

    ::

        factory = VerifiersTasks("textarena", game="Wordle-v0")
        factory = VerifiersTasks("my_tasks.py", env={"agent": {"max_turns": 8}})

    The first one loads the taskset and begins its first task, to see what tools a model is given.
    """

    REQUIRES_OWN_THREAD = False

    def __init__(
        self,
        taskset: str,
        *,
        env: Mapping[str, Any] | None = None,
        timeout_s: float = 300.0,
        **settings: Any,
    ) -> None:
        """
        Args:
            taskset: Its module or package, or the path of a file.
            env: The environment around it, as verifiers' ``[env]`` block: ``id``, and its agents.
            timeout_s: For each step of the environment, from a turn of the model to the next.
            settings: Of the taskset.
        """
        self._stage = Stage(taskset, settings, env or {}, timeout_s=timeout_s)
        self._class: type[VerifiersEpisode] | None = None
        self._lock = threading.Lock()

    def __call__(self) -> "VerifiersEpisode":
        """Make an environment.

        Raises:
            UsageError: There is no such taskset, or it does not take these settings.
            EnvironmentFault: The first task cannot be begun.
        """
        with self._lock:
            if self._class is None:
                self._class = _class_of(self._stage)
        return self._class()

    def __repr__(self) -> str:
        return f"VerifiersTasks({self._stage.name!r})"


class VerifiersEpisode:
    """One environment; subclasses have the tools of the taskset as methods."""

    REQUIRES_OWN_THREAD = False

    _stage: ClassVar[Stage]

    def __init__(self) -> None:
        self._episode: Episode | None = None
        self._begin()
        self.done = True  # until a first reset there is nothing to answer

    async def reset(self, seed: int = 0, index: int | None = None, **row: Any) -> Shown:
        """Begin a task; returns what its model is told first.

        Args:
            seed: Which task, counted from the first one and on from there again.
            index: Its place in the taskset, in the stead of a seed.
            row: Other columns of the row; not used.
        """
        await self.close()
        self._begin()
        stage = type(self)._stage
        task = stage.task(seed) if index is None else stage.task_at(index)
        self._episode = stage.episode(task)
        request = await loop().run(self._episode.begin())
        return self._news(request, is_first=True)

    async def reply(self, text: str) -> Shown:
        """Say something: the answer, a move, or the next thing in a conversation.

        Args:
            text: What the other side reads.
        """
        return await self._answered({"role": "assistant", "content": text})

    async def get_reward(self) -> float:
        """The sum of the environment's rewards. A model that stopped early is scored as it is."""
        if self._episode is not None and not self.done:
            await loop().run(self._episode.go_on(None))
            self._settle()
        if self._fault is not None:
            raise self._fault
        return self.reward

    async def close(self) -> None:
        """Break off the episode, with what the environment has started for it."""
        episode, self._episode = self._episode, None
        if episode is not None:
            await loop().run(episode.close())

    def _begin(self) -> None:
        self.done = False
        self.won = False
        """Whether the reward is 1 or more."""
        self.reward = 0.0
        self.turns = 0
        self._fault: Exception | None = None
        self._seen = 0
        self.metrics: dict[str, float] = {"win": 0.0, "turns": 0.0}

    async def _call(self, name: str, arguments: dict[str, Any]) -> Shown:
        function = {"name": name, "arguments": json.dumps(arguments)}
        call = {"id": f"call_{self.turns}", "type": "function", "function": function}
        return await self._answered({"role": "assistant", "content": None, "tool_calls": [call]})

    async def _answered(self, turn: dict[str, Any]) -> Shown:
        if self._episode is None or self.done:
            raise ValueError("The episode is over.")
        self.turns += 1
        return self._news(await loop().run(self._episode.go_on(turn)))

    def _news(self, request: dict[str, Any] | None, *, is_first: bool = False) -> Shown:
        """What the model is told that it has not seen."""
        if request is None:
            self._settle()
            if is_first and self._fault is not None:
                raise self._fault
            told = f"Its reward is {self.reward:g}." if self._fault is None else "It failed."
            return f"The episode is over. {told}"
        messages = request["messages"]
        # A conversation that begins anew, as in a second attempt, is shown from its beginning.
        new = messages[self._seen :] if len(messages) > self._seen else messages
        self._seen = len(messages) + 1  # and the turn that the model now takes
        return shown(new)

    def _settle(self) -> None:
        """Read what came of an episode that has ended."""
        assert self._episode is not None
        self.done = True
        try:
            score = self._episode.score()
        except InfrastructureFault:
            raise
        except EnvironmentFault as fault:
            self._fault = fault
            return
        self.reward, self.won = score.reward, score.reward >= 1.0
        own = {"win": float(self.won), "turns": float(self.turns)}
        self.metrics = {**score.metrics, **own}


def _class_of(stage: Stage) -> type[VerifiersEpisode]:
    taken = [name for name in dir(VerifiersEpisode) if name[0] != "_"]
    taken += ["done", "won", "reward", "reward_parts", "turns", "metrics"]
    specs = [
        ToolSpec(
            name=function["name"],
            description=function.get("description") or "",
            parameters=function["parameters"],
            returns={"type": "string"},
        )
        for function in loop().call(_opened(stage))
    ]
    members: dict[str, Any] = {"__doc__": f"Tasks of {stage.name}.", "_stage": stage}
    members |= calling_methods(specs, taken=taken)
    return type("VerifiersEpisode", (VerifiersEpisode,), members)


async def _opened(stage: Stage) -> list[dict[str, Any]]:
    """Open the stage; returns the tools that a model is told of at the first task."""
    await stage.open()
    try:
        first = stage.episode(stage.task(0))
        try:
            request = await first.begin()
        finally:
            await first.close()
        if request is None:
            first.score()
            raise EnvironmentFault(f"{stage.name} ended without asking the model anything.")
    except BaseException:
        await stage.close()  # a next try opens it again
        raise
    return [tool["function"] for tool in request.get("tools") or []]
