"""What a slow tool costs: 32 episodes whose tool takes 0.2 s a call.

Tools of different episodes may wait at the same time, so a run with a slow tool should take little
longer than the same run with an instant one plus one wait a round. That sum is the ideal here; the
benchmark fails (exit status 1) if the measured wall time is more than twice as long. A tiny random
model plays guess-the-number with forced turns (see ``forced_play.py``), four rounds of one call,
instantly, with a synchronous and with an asynchronous slow tool in turn, all in one process.

    python benchmarks/slow_tools.py              # under a minute
    python benchmarks/slow_tools.py --with-trl   # and the same in TRL, which waits 32 x 4 x 0.2 s
"""

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from corral.chat import ChatFormat
from corral.engines.torch_engine import TorchEngine
from corral.env import prepare
from corral.recipes.recipe import ScratchModel
from corral.recipes.scratch import build_scratch_model
from corral.records import Message, SamplingParams, Task
from corral.rollout import Limits, Player
from corral.training.models import load_model, load_tokenizer
from corral.worlds import find_world
from forced_play import EndlessGuessNumber, force_engine, force_generate
from machine import LoadMeter, describe_machine

EPISODES = 32
ROUNDS = 4
SLEEP_S = 0.2
ALLOWED_RATIO = 2.0
PROMPT: Message = {"role": "user", "content": "Find the number."}
CALL = {"type": "function", "function": {"name": "guess", "arguments": {"n": 10}}}


class SlowGuessNumber(EndlessGuessNumber):
    """The game behind a slow synchronous tool."""

    def guess(self, n: int) -> str:
        """Guess the number.

        Args:
            n: Your guess.
        """
        time.sleep(SLEEP_S)
        return super().guess(n)


class AsyncSlowGuessNumber(EndlessGuessNumber):
    """The game behind a slow asynchronous tool."""

    async def guess(self, n: int) -> str:  # type: ignore[override]
        """Guess the number.

        Args:
            n: Your guess.
        """
        await asyncio.sleep(SLEEP_S)
        return super().guess(n)


TOOLS = {"instant": EndlessGuessNumber, "sync": SlowGuessNumber, "async": AsyncSlowGuessNumber}


def main() -> int:
    """Measure, print a table, and say whether slow tools are cheap enough."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5, help="measurements of each kind of tool")
    parser.add_argument("--with-trl", action="store_true", help="measure TRL's rollout as well")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model, tokenizer = _tiny_model(Path(folder))
    meter = LoadMeter()
    seconds = asyncio.run(_play_all(model, tokenizer, args.runs))
    print(f"{describe_machine()}; other processes used {meter.foreign_cores()} cores")
    ideal_s = seconds["instant"] + ROUNDS * SLEEP_S
    print(f"{EPISODES} episodes, {ROUNDS} rounds, {SLEEP_S} s a call; medians of {args.runs}:\n")
    print("| tool | wall s | ideal s | wall / ideal |\n|---|---|---|---|")
    print(f"| instant | {seconds['instant']:.2f} | | |")
    for kind in ("sync", "async"):
        wall_s = seconds[kind]
        print(f"| {kind} | {wall_s:.2f} | {ideal_s:.2f} | {wall_s / ideal_s:.2f} |")
    if args.with_trl:
        wall_s = _trl_generation_s()
        print(f"| sync, in TRL | {wall_s:.2f} | {ideal_s:.2f} | {wall_s / ideal_s:.2f} |")
    worst = max(seconds["sync"], seconds["async"]) / ideal_s
    is_cheap = worst <= ALLOWED_RATIO
    verdict = "passed" if is_cheap else "FAILED"
    print(f"\n{verdict}: {worst:.2f} times the ideal, allowed {ALLOWED_RATIO:g} times")
    return 0 if is_cheap else 1


def _tiny_model(folder: Path) -> tuple[Any, Any]:
    section = ScratchModel(kind="scratch", hidden_size=64, layers=2, heads=4, intermediate_size=128)
    build_scratch_model(section, find_world("guess_number"), seed=0, target=folder)
    return load_model(folder, {}), load_tokenizer(folder, None)


async def _play_all(model: Any, tokenizer: Any, runs: int) -> dict[str, float]:
    """Median wall time of playing all episodes with each kind of tool."""
    schemas = prepare(EndlessGuessNumber).tools.schemas
    chat = ChatFormat.for_tokenizer(tokenizer, tools=schemas)
    turn = chat.turn_ids({"role": "assistant", "content": "", "tool_calls": [CALL]})
    engine = TorchEngine(model, max_batch=EPISODES)
    players = {name: _player(engine, chat, factory) for name, factory in TOOLS.items()}
    seconds: dict[str, list[float]] = {name: [] for name in TOOLS}
    undo = force_engine(turn)
    for run in range(runs + 1):
        for name, player in players.items():
            started = time.perf_counter()
            groups = await player.play([Task(index=0, prompt=(PROMPT,), seed=run)], EPISODES)
            if run:  # the first one constructs environments and allocates buffers
                seconds[name].append(time.perf_counter() - started)
            turns = {one.turns for group in groups for one in group.group.episodes}
            if turns != {ROUNDS + 1}:
                raise SystemExit(f"Episodes took {turns} turns instead of {ROUNDS + 1}.")
            engine.weights_changed(run)
    undo()
    for player in players.values():
        await player.aclose()
    await engine.aclose()
    return {name: median(values) for name, values in seconds.items()}


def _player(engine: TorchEngine, chat: ChatFormat, factory: Any) -> Player:
    return Player(
        engine,
        chat,
        kinds={None: prepare(factory)},
        limits=Limits(turns=ROUNDS, episode_tokens=800),
        sampling=SamplingParams(max_new_tokens=1, stop_ids=chat.stop_ids),
    )


def _trl_generation_s() -> float:
    """Seconds of TRL's rollout, with the small model of ``grpo_step.py``; its loss is not run."""
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    from forced_play import FORCED_TURN, distinct_rewards
    from grpo_step import PROMPT as TRL_PROMPT
    from grpo_step import prepare_model

    path = prepare_model("tiny", Path(tempfile.gettempdir()) / "corral-benchmarks")
    model, tokenizer = load_model(path, {}), load_tokenizer(path, None)
    with tempfile.TemporaryDirectory() as folder:
        trainer = GRPOTrainer(
            model,
            distinct_rewards,
            GRPOConfig(
                output_dir=folder,
                per_device_train_batch_size=EPISODES,
                num_generations=EPISODES,
                max_completion_length=800,
                max_tool_calling_iterations=ROUNDS,
                use_cpu=True,
                bf16=False,
                report_to="none",
            ),
            Dataset.from_list([{"prompt": [{"role": "user", "content": TRL_PROMPT}]}]),
            processing_class=tokenizer,
            environment_factory=SlowGuessNumber,
        )
        force_generate(model, tokenizer.encode(FORCED_TURN, add_special_tokens=False))
        rows = [{"prompt": [{"role": "user", "content": TRL_PROMPT}]} for _ in range(EPISODES)]
        started = time.perf_counter()
        trainer._generate_and_score_completions(rows)
        return time.perf_counter() - started


if __name__ == "__main__":
    sys.exit(main())
