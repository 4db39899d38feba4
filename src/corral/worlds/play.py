"""Plays scripted players in environments, and turns their games into demonstrations."""

import asyncio
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from corral.chat.messages import messages_of
from corral.chat.observation import merge_observation
from corral.env import (
    EnvironmentKind,
    call_get_reward,
    call_reset,
    close,
    is_done,
    prepare,
)
from corral.env import metrics as read_metrics
from corral.env.calls import BoundTools
from corral.errors import EnvironmentFault, InfrastructureFault, UsageError
from corral.records import Message, Outcome, ToolCall
from corral.worlds.policy import Policy, PolicyAction
from corral.worlds.world import Row, World

MAX_CALLS = 50
"""Ends a game that neither the environment nor the player ends."""

GAMES_AT_ONCE = 4
"""One waits for the thread of its environment while another plays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedTurn:
    """One call of a scripted player and what came back."""

    action: PolicyAction
    content: Any
    """What a model would read: text, or content blocks."""
    is_error: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedGame:
    """One game of a scripted player. Owns its environment, which nobody else has touched."""

    row: Row
    seed: int
    observation: Any
    """What ``reset`` returned: None, text, or content blocks."""
    turns: tuple[PlayedTurn, ...]
    outcome: Outcome
    reward: float | None
    """The environment's own reward; None where it has none or the game is a fault."""
    is_win: bool
    metrics: dict[str, float]
    env: Any
    """The environment as the game left it, closed."""
    tools: tuple[dict[str, Any], ...]
    """Schemas of the tools the player had."""
    error: str | None = None
    """What failed, when the outcome is a fault."""


def play_scripted(
    world: World,
    policy: Policy,
    row: Row,
    seed: int,
    *,
    kind: EnvironmentKind | None = None,
    max_calls: int = MAX_CALLS,
) -> PlayedGame:
    """Play one game to its end; the same arguments always give the same game.

    Args:
        world: What is played.
        policy: Who plays; ``world.policies`` has some.
        row: The task, as ``world.tasks`` makes them.
        seed: Of the player's random stream.
        kind: The prepared environment, to prepare it once for many games.
        max_calls: Ends a game that neither side ends (outcome ``out_of_turns``).
    """
    kind = kind or prepare(world.factory)
    return asyncio.run(_play(world, policy, row, seed, kind, max_calls))


def play_together(
    world: World,
    policy: Policy,
    rows: Sequence[Row],
    seeds: Sequence[int],
    *,
    kind: EnvironmentKind,
) -> list[PlayedGame]:
    """The games of ``play_scripted`` with these rows and seeds, a few at the same time."""

    async def play_all() -> list[PlayedGame]:
        free = asyncio.Semaphore(GAMES_AT_ONCE)

        async def play(row: Row, seed: int) -> PlayedGame:
            async with free:
                return await _play(world, policy, row, seed, kind, MAX_CALLS)

        return await asyncio.gather(*map(play, rows, seeds))

    return asyncio.run(play_all())


def play_episodes(
    world: World, policy: Policy, *, episodes: int, seed: int
) -> Iterator[PlayedGame]:
    """``episodes`` games with the seeds ``seed``, ``seed + 1``, ...

    A game's seed fixes its task and its player, so any of them can be played again alone.
    """
    kind = prepare(world.factory)
    for game_seed in range(seed, seed + episodes):
        (row,) = world.tasks(game_seed, 1)
        yield play_scripted(world, policy, row, game_seed, kind=kind)


def summary(world: World, game: PlayedGame) -> dict[str, Any]:
    """One scripted game as a JSON-ready object."""
    return game_row(
        world,
        seed=game.seed,
        outcome=game.outcome,
        reward=game.reward,
        turns=len(game.turns),
        is_won=game.is_win,
    )


def game_row(
    world: World, *, seed: int, outcome: Outcome, reward: float | None, turns: int, is_won: bool
) -> dict[str, Any]:
    """One game as a JSON-ready object, whoever played it."""
    return {
        "world": world.name,
        "seed": seed,
        "outcome": str(outcome),
        "reward": reward,
        "turns": turns,
        "won": is_won,
    }


def demonstration(
    game: PlayedGame, *, with_thoughts: bool = True, last_word: str = "Done."
) -> list[Message]:
    """The game as the conversation of a model that played it, for supervised warm-up.

    Args:
        game: A game without faults.
        with_thoughts: Whether the player's thoughts become ``reasoning_content``.
        last_word: What the model says after the last answer; empty leaves the conversation there.
    """
    if game.outcome.is_fault():
        raise UsageError(f"A game that ended in {game.outcome} teaches nothing: {game.error}")
    messages = opening(game.row, game.observation)
    for turn in game.turns:
        messages.append(_spoken(turn.action, with_thoughts=with_thoughts))
        messages.append({"role": "tool", "name": turn.action.tool, "content": turn.content})
    if last_word:
        messages.append({"role": "assistant", "content": last_word})
    return messages


async def _play(
    world: World, policy: Policy, row: Row, seed: int, kind: EnvironmentKind, max_calls: int
) -> PlayedGame:
    turns: list[PlayedTurn] = []
    home, env, observation, reward, error = None, None, None, None, None
    is_win, numbers = False, dict[str, float]()
    try:
        home = kind.construct()
        env = home.instance
        observation = await call_reset(env, row, executor=home.thread)
        tools = kind.tools.bind(env, executor=home.thread)
        outcome = await _take_turns(policy, env, tools, observation, seed, turns, max_calls)
        reward = await call_get_reward(env, executor=home.thread)
        is_win, numbers = world.is_win(env), read_metrics(env)
    except EnvironmentFault as fault:
        outcome, error = Outcome.ENVIRONMENT_FAULT, str(fault)
    except InfrastructureFault as fault:
        outcome, error = Outcome.INFRASTRUCTURE_FAULT, str(fault)
    finally:
        if home is not None:
            await close(env, executor=home.thread)
            home.leave()
    return PlayedGame(
        row=row,
        seed=seed,
        observation=observation,
        turns=tuple(turns),
        outcome=outcome,
        reward=reward,
        is_win=is_win,
        metrics=numbers,
        env=env,
        tools=tuple(kind.tools.schemas),
        error=error,
    )


async def _take_turns(
    policy: Policy,
    env: Any,
    tools: BoundTools,
    observation: Any,
    seed: int,
    turns: list[PlayedTurn],
    max_calls: int,
) -> Outcome:
    """Play on the freshly reset ``env``; appends to ``turns`` so that a fault keeps what was."""
    # A stream of its own: were it the one that drew the task, a player would draw the secret.
    rng = random.Random(f"player {seed}")
    last_text = observation if isinstance(observation, str) else ""
    while not is_done(env):
        if len(turns) == max_calls:
            return Outcome.OUT_OF_TURNS
        action = policy(env, last_text, rng)
        if action is None:
            return Outcome.FINISHED
        result = await tools.call(action.tool, action.arguments)
        turns.append(PlayedTurn(action=action, content=result.content, is_error=result.is_error))
        last_text = str(result.content)
    return Outcome.STOPPED_BY_ENVIRONMENT


def opening(row: Row, observation: Any) -> list[Message]:
    """What a player reads first: the prompt, with what ``reset`` returned added to its end."""
    return merge_observation(messages_of(row.get("prompt")), observation)


def _spoken(action: PolicyAction, *, with_thoughts: bool) -> Message:
    call = ToolCall(name=action.tool, arguments=action.arguments).as_message_part()
    message: Message = {"role": "assistant", "content": "", "tool_calls": [call]}
    if with_thoughts and action.thought:
        message["reasoning_content"] = action.thought
    return message
