"""Plays one episode: reset, then turns and tools until something ends it, then the reward."""

import asyncio
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from corral.chat.format import ChatFormat
from corral.chat.images import Encoded
from corral.chat.observation import merge_observation
from corral.chat.pictures import has_image
from corral.chat.tokenizer import plain_text, text_prompt_ids
from corral.engines.protocol import Engine
from corral.env import (
    BoundTools,
    EnvironmentKind,
    Home,
    ToolSet,
    call_reset,
    call_rewards,
    is_done,
    metrics,
)
from corral.errors import CorralError, EnvironmentFault, InfrastructureFault
from corral.records import (
    Episode,
    Finish,
    MalformedCall,
    Message,
    Outcome,
    ParsedTurn,
    Sampled,
    SamplingParams,
    Task,
    ToolCall,
    ToolCounts,
)
from corral.rollout.conversation import Conversation
from corral.rollout.images import image_boundary, sample_with_images
from corral.rollout.limits import Limits, TokenBudget
from corral.rollout.seeds import derive
from corral.rollout.stopwatch import Stopwatch
from corral.rollout.tool_calls import (
    added,
    answer_calls,
    characters_of,
    for_template,
    longest_of,
)

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What all episodes of one call to play share."""

    engine: Engine
    chat: ChatFormat
    limits: Limits
    sampling: SamplingParams
    """How turns are sampled; ``max_new_tokens`` and ``seed`` are set for each turn."""
    stop_when_done: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """Who plays what: one member of a task's group, and its environment's kind and tools."""

    task: Task
    member: int
    kind: EnvironmentKind | None
    tools: ToolSet
    row: Mapping[str, Any]
    """What ``reset`` receives."""

    @property
    def text(self) -> str | None:
        """The prompt where it is plain text that the model continues, without a chat template.

        With tools, an environment or images there is a conversation, and text is its first message.
        """
        prompt = self.task.columns.get("prompt")
        is_alone = self.kind is None and len(self.tools) == 0
        is_alone = is_alone and not any(map(has_image, self.task.prompt))
        return prompt if is_alone and isinstance(prompt, str) else None


class EpisodeRun:
    """One attempt at one episode. It is played once; a retry is a new object with the same seat.

    Every draw depends on (task seed, member, turn) alone, so attempts do not differ in luck.
    """

    def __init__(self, rules: Rules, seat: Seat, home: Home | None, *, key: str) -> None:
        self._rules = rules
        self._seat = seat
        self._home = home
        self._environment: object | None = None if home is None else home.instance
        self._key = key
        self._talk = Conversation(seat.task.prompt, Encoded([]))
        self._counts = ToolCounts()
        self._watch = Stopwatch()
        self._bound: BoundTools | None = None
        self.is_environment_busy = False
        """A tool was interrupted and may still be running in the environment."""
        self.fault: CorralError | None = None
        """Why the episode is a fault."""
        self.unfit: tuple[str, int] | None = None
        """The tool whose result did not fit any more, and how many characters that has."""

    async def play(self) -> Episode:
        """The finished episode; one whose environment failed is a fault with its error.

        Raises:
            InfrastructureFault: Something beneath the episode failed; it may be tried again.
            UsageError: The run is set up wrongly.
        """
        rewards: dict[str, float | None] = {}
        reported: dict[str, float] = {}
        try:
            await self._open()
            outcome = await self._play_in_time()
            rewards = await self._own_reward()
            if self._environment is not None:
                reported = metrics(self._environment)
        except EnvironmentFault as fault:
            self.fault = fault
            outcome = Outcome.ENVIRONMENT_FAULT
        return Episode(
            task=self._seat.task,
            member=self._seat.member,
            messages=tuple(self._talk.messages),
            transcript=self._talk.transcript,
            outcome=outcome,
            turns=self._talk.turns,
            tools=self._counts,
            rewards=rewards if self.fault is None else {},
            seconds=self._watch.seconds(),
            metrics=reported,
            error=None if self.fault is None else str(self.fault),
            completion_start=self._talk.completion_start,
        )

    async def _open(self) -> None:
        """Reset the environment and render the prompt with what it observed."""
        task = self._seat.task
        observation = None
        kind = self._seat.kind
        if kind is not None and self._home is not None:
            home = self._home
            reset = call_reset(home.instance, self._seat.row, executor=home.thread)
            with self._watch.part("reset"):
                observation = await self._within_limit(f"{kind.name}.reset", reset)
        merged = merge_observation(task.prompt, observation)
        with image_boundary(f"The prompt of task {task.index}"):
            messages = self._rules.chat.loaded(merged)
            prompt = self._prompt(messages)
        context = self._rules.engine.max_context()
        if len(prompt.ids) >= context:
            raise EnvironmentFault(
                f"The prompt of task {task.index} has {len(prompt.ids)} tokens, but the model's "
                f"context is {context}: prompts are never cut, so shorten it or use a model with a "
                "longer context."
            )
        self._talk = Conversation(messages, prompt)

    def _prompt(self, messages: list[Message]) -> Encoded:
        chat, text = self._rules.chat, self._seat.text
        if text is not None:
            return Encoded(text_prompt_ids(chat.renderer.tokenizer, text))
        return chat.prompt(messages, self._seat.tools.schemas or None)

    async def _play_in_time(self) -> Outcome:
        clock = asyncio.timeout(self._rules.limits.seconds)
        try:
            async with clock:
                return await self._play_turns()
        except TimeoutError:
            if not clock.expired():
                raise
            return Outcome.TIMED_OUT
        finally:
            self._rules.engine.release(self._key)

    async def _play_turns(self) -> Outcome:
        thread = None if self._home is None else self._home.thread
        bound = self._bound = self._seat.tools.bind(self._environment, executor=thread)
        rounds = 0
        while True:
            calls, outcome = await self._take_turn(rounds)
            if outcome is not None:
                return outcome
            with self._watch.part("tools"):
                self.is_environment_busy = True
                results, counts = await answer_calls(calls, self._seat.tools, bound)
                self.is_environment_busy = False
            rounds += 1
            self._counts = added(self._counts, counts)
            outcome = self._take_results(results)
            if outcome is not None:
                return outcome

    async def _take_turn(
        self, rounds: int
    ) -> tuple[tuple[ToolCall | MalformedCall, ...], Outcome | None]:
        """Sample a turn; the calls to answer, or how the episode ends with it."""
        with self._watch.part("sample"):
            sampled = await self._sample()
        turn = self._parse(sampled)
        self._talk.add_turn(sampled, turn.as_message())
        return turn.calls, self._end_of_turn(sampled, turn, rounds)

    async def _sample(self) -> Sampled:
        task, member = self._seat.task, self._seat.member
        params = replace(
            self._rules.sampling,
            max_new_tokens=self._budget().next_turn(),
            stop_ids=self._rules.sampling.stop_ids | self._rules.chat.stop_ids,
            seed=derive(task.seed, member, self._talk.turns),
        )
        # A copy: an engine may keep what it was given, and the conversation grows on.
        ids = tuple(self._talk.ids)
        engine = self._rules.engine
        if self._talk.images:
            return await sample_with_images(engine, ids, params, self._key, self._talk.images)
        return await engine.sample(ids, params, key=self._key)

    def _parse(self, sampled: Sampled) -> ParsedTurn:
        chat = self._rules.chat
        if len(self._seat.tools) > 0:
            turn = chat.parse(sampled.ids, finish=sampled.finish, after=self._talk.ids)
            calls = tuple(self._typed(call) for call in turn.calls)
            return replace(turn, content=turn.content.strip(), calls=calls)
        # Without tools nothing is special in a turn: reward functions read it as it was written.
        ids = sampled.ids[:-1] if sampled.finish is Finish.STOP else sampled.ids
        content = plain_text(chat.renderer.tokenizer, ids)
        return ParsedTurn(content=content, reasoning=None, calls=())

    def _typed(self, call: ToolCall | MalformedCall) -> ToolCall | MalformedCall:
        if isinstance(call, MalformedCall):
            return call
        return replace(call, arguments=self._seat.tools.typed(call.name, call.arguments))

    def _end_of_turn(self, sampled: Sampled, turn: ParsedTurn, rounds: int) -> Outcome | None:
        """Checks 1 to 4 of :mod:`corral.rollout.limits`."""
        if sampled.finish is Finish.LENGTH:
            return Outcome.OUT_OF_TOKENS
        if not turn.calls:
            return Outcome.FINISHED
        if self._rules.limits.turns is not None and rounds >= self._rules.limits.turns:
            return Outcome.OUT_OF_TURNS
        if not self._budget().fits(1):
            return Outcome.OUT_OF_TOKENS
        return None

    def _take_results(self, results: list[Message]) -> Outcome | None:
        """Checks 5 to 7 of :mod:`corral.rollout.limits`."""
        suffix = Encoded([])
        fits = not self._budget().is_beyond(characters_of(results))
        if fits:
            chat = self._rules.chat
            with image_boundary("A tool's result"):
                results = chat.loaded(results)
                suffix = chat.suffix(for_template(results, self._seat.tools))
            fits = self._budget().fits(len(suffix.ids))
        is_over = (
            self._rules.stop_when_done
            and self._environment is not None
            and is_done(self._environment)
        )
        if is_over:
            self._talk.add_results(results, suffix if fits else None)
            return Outcome.STOPPED_BY_ENVIRONMENT
        if not fits:
            self.unfit = longest_of(for_template(results, self._seat.tools))
            return Outcome.OUT_OF_TOKENS
        self._talk.add_results(results, suffix)
        return None if self._budget().next_turn() > 0 else Outcome.OUT_OF_TOKENS

    def _budget(self) -> TokenBudget:
        return TokenBudget(
            limits=self._rules.limits,
            prompt_length=self._talk.prompt_length,
            max_context=self._rules.engine.max_context(),
            used=self._talk.used,
        )

    async def _own_reward(self) -> dict[str, float | None]:
        kind = self._seat.kind
        home = self._home
        if kind is None or home is None or not kind.has_reward:
            return {}
        with self._watch.part("reward"):
            await self._let_tools_end()
            rewards = call_rewards(home.instance, kind.name, executor=home.free_thread())
            return await self._within_limit(f"{kind.name}.get_reward", rewards)

    async def _let_tools_end(self) -> None:
        """Wait for a call that time interrupted, as long as an episode may take: a reward is best
        read when nothing changes the environment. One that hangs longer does not keep it unread."""
        if self.is_environment_busy and self._bound is not None:
            try:
                async with asyncio.timeout(self._rules.limits.seconds):
                    await self._bound.settled()
            except TimeoutError:
                return

    async def _within_limit(self, what: str, step: Awaitable[Result]) -> Result:
        """A step that must not hang: it says nothing about the model, so it is a fault."""
        seconds = self._rules.limits.seconds
        clock = asyncio.timeout(seconds)
        try:
            async with clock:
                return await step
        except TimeoutError as error:
            if not clock.expired():
                raise
            raise InfrastructureFault(f"{what} took longer than {seconds} s.") from error
