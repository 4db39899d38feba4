"""The same training with any number of processes: ``python -m support.distributed_run OUT``.

Started by ``test_processes.py`` with the variables that launchers set. The first process writes the
weights and numbers of each scenario to OUT.
"""

import os
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch

from corral import GRPOConfig, GRPOTrainer, SFTConfig, SFTTrainer
from corral.records import Sample
from corral.training.learner import Learner
from corral.training.policy_step import PolicyStep
from corral.training.processes import make_accelerator
from corral.training.reference import Reference
from support.tiny_models import tiny_model, tiny_tokenizer

TOKENIZER = tiny_tokenizer()
COMPARED = ("reward", "rewards/OtherHalf/mean", "completions/mean_length", "num_tokens")


def rows(lengths: list[int]) -> list[Sample]:
    chance = random.Random(5)
    return [
        Sample(
            ids=tuple(chance.randrange(200) for _ in range(length)),
            loss_mask=(0, *[1] * (length - 1)),
            logprobs=(0.0, *[-5.5] * (length - 1)),
            advantage=chance.uniform(-1, 1),
            version=0,
            episode=(0, member),
        )
        for member, length in enumerate(lengths)
    ]


def weights(model: Any) -> torch.Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


def policy_steps(share: list[list[int]], family: str = "llama", **options: Any) -> dict[str, Any]:
    """Two steps on six uneven rows; ``share`` says which rows each of two processes has."""
    state = make_accelerator(GRPOConfig())
    every = rows([40, 3, 5, 4, 3, 6])
    chosen = [every[place] for place in share[state.process_index]]
    own = every if state.num_processes == 1 else chosen
    config = GRPOConfig(learning_rate=1e-3, token_budget=12, gradient_checkpointing=True, **options)
    model = tiny_model(TOKENIZER, family=family)
    reference = Reference(tiny_model(TOKENIZER, seed=1).eval(), has_adapter=False)
    step = PolicyStep.of(Learner(model, config), config, reference=reference)
    before = step.score_before(own)
    first, metrics = step(own, before)
    second, _ = step(own, before)
    return {
        "weights": weights(model),
        "losses": [first.loss, second.loss],
        "norms": [first.grad_norm, second.grad_norm],
        "metrics": metrics,
    }


class Half:
    """Only half of the tasks are ever scored, and only they have a second tool."""

    def reset(self, number: int, **kwargs: Any) -> str:
        self.number = number
        return f"Say {number}."

    def say(self, text: str) -> str:
        """Say something.

        Args:
            text: What to say.
        """
        return text


class OtherHalf(Half):
    def get_reward(self) -> float:
        return 0.5


def reward(completion_ids: Any, number: list[int], log_metric: Any, **kwargs: Any) -> list[Any]:
    if number[0] % 2:
        log_metric("odd", 1.0)
        return [None] * len(number)
    return [
        sum(ids) / len(ids) if n % 2 == 0 else None
        for ids, n in zip(completion_ids, number, strict=True)
    ]


def grpo(folder: str, **options: Any) -> dict[str, Any]:
    processes = make_accelerator(GRPOConfig()).num_processes
    names = ["half", "other"]
    trainer = GRPOTrainer(
        tiny_model(TOKENIZER),
        reward,
        GRPOConfig(
            output_dir=folder,
            max_steps=2,
            num_generations=4,
            per_device_train_batch_size=8 // processes,
            max_completion_length=8,
            learning_rate=1e-3,
            shuffle_dataset=False,
            **options,
        ),
        [{"prompt": "Go.", "number": n, "environment": names[n % 2]} for n in range(4)],
        processing_class=TOKENIZER,
        environment_factory={"half": Half, "other": OtherHalf},
    )
    trainer.train()
    history = trainer.state.log_history[:-1]
    return {
        "weights": weights(trainer.model),
        "losses": [entry["loss"] for entry in history],
        "norms": [entry["grad_norm"] for entry in history],
        "metrics": {
            name: history[0][name]
            for name in (
                "reward",
                "rewards/OtherHalf/mean",
                "completions/mean_length",
                "num_tokens",
            )
        },
        "odd": history[0].get("odd"),
    }


def sft(folder: str) -> dict[str, Any]:
    processes = make_accelerator(GRPOConfig()).num_processes
    talk = [{"prompt": "Hi.", "completion": "word " * (1 + 5 * (n % 2))} for n in range(5)]
    trainer = SFTTrainer(
        tiny_model(TOKENIZER),
        SFTConfig(
            output_dir=folder,
            per_device_train_batch_size=4 // processes,
            num_train_epochs=1,
            learning_rate=1e-3,
        ),
        talk,
        processing_class=TOKENIZER,
    )
    trainer.train()
    history = trainer.state.log_history[:-1]
    return {
        "weights": weights(trainer.model),
        "losses": [entry["loss"] for entry in history],
        "norms": [entry["grad_norm"] for entry in history],
        "metrics": {},
    }


def main(out: Path) -> None:
    uneven = [[0], [1, 2, 3, 4, 5]]
    assert make_accelerator(GRPOConfig()).num_processes == int(os.environ.get("WORLD_SIZE", "1"))
    with tempfile.TemporaryDirectory() as folder:
        found = {
            "uneven rows": policy_steps(uneven),
            "uneven rows, KL and entropy": policy_steps(
                uneven, beta=0.1, top_entropy_quantile=0.5, entropy_coef=0.01, loss_type="grpo"
            ),
            "a process without rows": policy_steps([[0, 1, 2, 3, 4, 5], []], beta=0.1),
            "experts": policy_steps(uneven, "qwen3_moe", router_aux_loss_coef=0.5),
            "experts, a process without rows": policy_steps(
                [[0, 1, 2, 3, 4, 5], []], "qwen3_moe", router_aux_loss_coef=0.5
            ),
            "grpo": grpo(folder + "/grpo"),
            "grpo, batch scale": grpo(folder + "/batch", scale_rewards="batch", num_iterations=2),
            "sft": sft(folder + "/sft"),
        }
    if make_accelerator(GRPOConfig()).is_main_process:
        torch.save(found, out)
    make_accelerator(GRPOConfig()).end_training()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
