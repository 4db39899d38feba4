"""The same steps with TRL and with Corral: ``python -m support.trl_step_run MODEL OUT``.

Started by ``test_trl_step.py`` in one or two processes, with the variables that launchers set. Both
libraries train the model in the folder MODEL on the same rollouts, and the first process writes
what each of them found at each step to OUT. To import TRL takes long, so one start runs all cases.
"""

import os
import random
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

os.environ["TRL_EXPERIMENTAL_SILENCE"] = "1"

import datasets
import torch
import trl
from accelerate import PartialState
from accelerate.utils import gather_object
from transformers import TrainerCallback

import corral
from support.tiny_models import save_tiny_model

MEMBERS = 4
PROMPTS = 8
ROWS_A_PASS = 8
"""Episodes of one accumulation step, all processes together."""
LENGTHS = (3, 7, 12, 20)
"""Tokens of the members' completions. All groups have the same lengths in another order: in TRL's
bnpo each process divides by its own tokens, so only with equal counts do two do what one does."""
LOSSES = ("grpo", "dapo", "dr_grpo", "bnpo")
COMMON: dict[str, Any] = {
    "num_generations": MEMBERS,
    "max_completion_length": 24,
    "learning_rate": 1e-3,
    "shuffle_dataset": False,
    "reward_weights": [1.0, 0.5],
    "gradient_checkpointing": False,
    "bf16": False,
    "use_cpu": True,
    # With the default of 1e-8, a gradient of nothing but rounding moves its weight like any other.
    "adam_epsilon": 1e-3,
    "seed": 5,
}
TRL_ONLY: dict[str, Any] = {
    "logging_steps": 1,
    "save_strategy": "no",
    "report_to": "none",
    "disable_tqdm": True,
}
COMPARED = (
    "reward",
    "reward_std",
    "rewards/thirds/mean",
    "rewards/thirds/std",
    "rewards/early/mean",
    "completions/mean_length",
    "frac_reward_zero_std",
    "num_tokens",
)
ADDED = ("entropy_coef", "policy_loss", "aux_loss")
"""Compared where the loss has an entropy bonus, or the model has experts."""
ROWS = [
    {"prompt": [{"role": "user", "content": f"Task {number}" + "!" * number}], "goal": number}
    for number in range(PROMPTS)
]


@dataclass(frozen=True, kw_only=True)
class Case:
    """Options of both libraries; the batch size is that of all processes together."""

    steps: int
    options: dict[str, Any]
    corral_only: dict[str, Any] = field(default_factory=dict)
    family: str = "llama"
    """What kind of model; see ``support.tiny_models``."""

    def settings(self, processes: int) -> dict[str, Any]:
        """What both libraries are given."""
        batch = {"max_steps": self.steps, "per_device_train_batch_size": ROWS_A_PASS // processes}
        return {**COMMON, **batch, **self.options}


def cases(processes: int) -> dict[str, Case]:
    """By name. The policy is its own reference in the first step, so KL shows from the second."""
    found: dict[str, Case] = {}
    # With several processes TRL balances what each of them has, Corral what all have.
    if processes == 1:
        for weight in (None, 0.5):
            options = {"router_aux_loss_coef": weight}
            found[f"experts, weight {weight}"] = Case(steps=3, options=options, family="qwen3_moe")
    for loss in LOSSES:
        for beta in (0.0, 0.04):
            options = {"loss_type": loss, "beta": beta}
            found[f"{loss}, beta {beta}"] = Case(steps=5, options=options)
        kl = {"loss_type": loss, "beta": 0.04}
        found[f"{loss}, two passes"] = Case(steps=4, options=kl | {"num_iterations": 2})
        cut = {"token_budget": 120}
        found[f"{loss}, many micro-batches"] = Case(steps=2, options=kl, corral_only=cut)
        # Of bnpo, TRL makes the mean of micro-batches, each divided by its own tokens.
        if loss != "bnpo":
            accumulated = kl | {"gradient_accumulation_steps": 2}
            found[f"{loss}, accumulated"] = Case(steps=3, options=accumulated)
    moving = {"beta": 0.5, "sync_ref_model": True, "ref_model_mixup_alpha": 0.3}
    moving["ref_model_sync_steps"] = 1
    found["moving reference"] = Case(steps=3, options=moving)
    # Within a generation the reference stays what it was when the generation was played.
    found["moving reference, two passes"] = Case(steps=4, options=moving | {"num_iterations": 2})
    adaptive = {"use_adaptive_entropy": True, "entropy_coef": 0.1, "entropy_coef_delta": 0.05}
    # An untrained model is above any target that is meant.
    found["adaptive entropy"] = Case(steps=3, options=adaptive | {"entropy_target": 100.0})
    found["batch scale and temperature"] = Case(
        steps=2, options={"scale_rewards": "batch", "temperature": 0.7}
    )
    return found


@dataclass(kw_only=True)
class Found:
    """What one library found, one entry a step."""

    losses: list[float] = field(default_factory=list)
    norms: list[float] = field(default_factory=list)
    weights: list[dict[str, torch.Tensor]] = field(default_factory=list)
    advantages: list[list[tuple[str, float]]] = field(default_factory=list)
    """Of all processes, each with its prompt's text, sorted by that."""
    metrics: list[dict[str, float]] = field(default_factory=list)

    def look(self, model: Any, prompts: list[Any], advantages: list[float]) -> None:
        """Keep what a step left."""
        texts = [prompt[-1]["content"] for prompt in prompts]
        pairs = zip(texts, advantages, strict=True)
        self.advantages.append(sorted(pairs, key=lambda pair: pair[0]))
        parameters = model.named_parameters()
        self.weights.append({name: value.detach().clone() for name, value in parameters})

    def end(self, history: list[dict[str, float]]) -> "Found":
        """Keep what was logged of the steps."""
        history = [entry for entry in history if "loss" in entry]
        self.losses = [entry["loss"] for entry in history]
        self.norms = [entry["grad_norm"] for entry in history]
        self.metrics = [
            {name: entry[name] for name in (*COMPARED, *ADDED) if name in entry}
            for entry in history
        ]
        return self


def rollout(prompts: list[Any], trainer: Any) -> dict[str, Any]:
    """Fixed completions: a pure function of the step, the prompt and the member.

    A third of the tokens are not the model's.
    """
    tokenizer = trainer.processing_class
    has_experts = hasattr(trainer.accelerator.unwrap_model(trainer.model).config, "num_experts")
    found: dict[str, list[Any]] = {"prompt_ids": [], "completion_ids": [], "env_mask": []}
    for place, prompt in enumerate(prompts):
        text = prompt[-1]["content"]
        chance = random.Random(f"{trainer.state.global_step} {text}")
        lengths = chance.sample(LENGTHS, MEMBERS)
        letters = random.Random(f"{trainer.state.global_step} {text} {place % MEMBERS}")
        length = lengths[place % MEMBERS]
        ids = [letters.randrange(97, 123) for _ in range(length - 1)]
        found["prompt_ids"].append(
            tokenizer.apply_chat_template(prompt, add_generation_prompt=True)["input_ids"]
        )
        found["completion_ids"].append([*ids, tokenizer.eos_token_id])
        # Corral leaves out tokens after the last that is trained. They change nothing but which
        # experts are in use.
        ends = {length - 1} if has_experts else set()
        found["env_mask"].append([int(index % 3 != 1 or index in ends) for index in range(length)])
    found["third"] = [sum(token % 3 == 0 for token in ids) for ids in found["completion_ids"]]
    return {**found, "logprobs": None}


def thirds(third: list[int], completion_ids: list[list[int]], **kwargs: Any) -> list[Any]:
    """From a column that the rollout adds; None for the longest completion of each group."""
    return [
        None if len(ids) == max(LENGTHS) else count / len(ids)
        for count, ids in zip(third, completion_ids, strict=True)
    ]


def early(completions: list[Any], goal: list[int], **kwargs: Any) -> list[Any]:
    """Reads the text; None for every other task, so that some completions have no reward at all."""
    texts = [completion[0]["content"] for completion in completions]
    return [
        None if number % 2 else sum(letter < "m" for letter in text) / len(text)
        for text, number in zip(texts, goal, strict=True)
    ]


class WatchTRL(TrainerCallback):
    """Looks at TRL's trainer after each step."""

    def __init__(self) -> None:
        self.found = Found()
        self.trainer: Any = None

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        model = self.trainer.accelerator.unwrap_model(self.trainer.model)
        logs = self.trainer._logs
        self.found.look(model, list(logs["prompt"]), list(logs["advantages"]))


def with_trl(model: Path, case: Case, processes: int, folder: str) -> Found:
    watch = WatchTRL()
    watch.trainer = trl.GRPOTrainer(
        str(model),
        [thirds, early],
        trl.GRPOConfig(output_dir=folder, **TRL_ONLY, **case.settings(processes)),
        datasets.Dataset.from_list(ROWS),
        rollout_func=rollout,
        callbacks=[watch],
    )
    watch.trainer.train()
    return watch.found.end(watch.trainer.state.log_history)


class WatchCorral:
    """A tracker that looks at Corral's trainer after each step."""

    def __init__(self) -> None:
        self.found = Found()
        self.trainer: Any = None

    def log(self, step: int, metrics: Any, stage: str) -> None:
        if "loss" not in metrics:
            return
        episodes, advantages = self.trainer.latest
        prompts = [episode.task.prompt for episode in episodes]
        self.found.look(self.trainer.model, prompts, advantages)

    def close(self) -> None: ...


class WatchedTrainer(corral.GRPOTrainer):
    """Keeps the last generation of all processes."""

    def _play(self, number: int) -> Any:
        generation = super()._play(number)
        episodes, advantages = generation.episodes(), generation.advantages.values
        self.latest = gather_object(episodes), gather_object(list(advantages))
        return generation


def with_corral(model: Path, case: Case, processes: int, folder: str) -> Found:
    watch = WatchCorral()
    watch.trainer = WatchedTrainer(
        str(model),
        [thirds, early],
        corral.GRPOConfig(output_dir=folder, **case.settings(processes), **case.corral_only),
        ROWS,
        rollout_func=rollout,
        tracker=watch,
    )
    watch.trainer.train()
    return watch.found.end(watch.trainer.state.log_history)


def main(model: Path, out: Path) -> None:
    processes = PartialState(cpu=True).num_processes
    assert processes == int(os.environ.get("WORLD_SIZE", "1"))
    results: dict[str, dict[str, Found]] = {}
    # Each process has a folder of its own, like machines without a common disk.
    with tempfile.TemporaryDirectory() as folder:
        experts = save_tiny_model(Path(folder) / "experts", family="qwen3_moe")
        folders = {"llama": model, "qwen3_moe": experts}
        for name, case in cases(processes).items():
            model = folders[case.family]
            ours = with_corral(model, case, processes, f"{folder}/corral/{name}")
            theirs = with_trl(model, case, processes, f"{folder}/trl/{name}")
            results[name] = {"corral": vars(ours), "trl": vars(theirs)}
    if PartialState().is_main_process:
        torch.save(results, out)
    PartialState().destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
