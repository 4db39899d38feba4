"""Training on rows with and without images: ``python -m support.image_processes_run OUT``.

Started by ``test_images.py`` with any number of processes. The first process writes the weights and
numbers of each scenario to OUT.
"""

import random
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch

from corral import GRPOConfig, GRPOTrainer, SFTConfig, SFTTrainer
from corral.chat import ChatFormat
from corral.records import Sample
from corral.training.learner import Learner
from corral.training.policy_step import PolicyStep
from corral.training.processes import make_accelerator
from support.gallery import Gallery, picture
from support.tiny_vlms import tiny_vlm


def rows(chat: ChatFormat, pictures: list[int]) -> list[Sample]:
    """A row for each number of pictures."""
    chance = random.Random(5)
    made: list[Sample] = []
    for member, count in enumerate(pictures):
        shown = [{"type": "image", "image": picture(10 * member + n)} for n in range(count)]
        blocks = [{"type": "text", "text": "What is it?"}, *shown]
        prompt = chat.prompt(chat.loaded([{"role": "user", "content": blocks}]))
        said = tuple(chance.randrange(200) for _ in range(5))
        made.append(
            Sample(
                ids=(*prompt.ids, *said),
                loss_mask=(0,) * len(prompt.ids) + (1,) * len(said),
                logprobs=(0.0,) * len(prompt.ids) + (-5.5,) * len(said),
                advantage=chance.uniform(-1, 1),
                version=0,
                episode=(0, member),
                images=prompt.images,
            )
        )
    return made


def weights(model: Any) -> torch.Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


def optimizer(model: Any) -> tuple[Any, None]:
    """One that does not divide by tiny numbers as Adam does, which blows rounding up."""
    return torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9), None


def policy_steps(family: str, pictures: list[int], share: list[list[int]]) -> dict[str, Any]:
    """Three steps on rows with so many pictures; ``share`` says which of two processes has which.

    The second has no picture anywhere: momentum must not move a vision tower that nobody used.
    """
    state = make_accelerator(GRPOConfig())
    model, processor = tiny_vlm(family)
    chat = ChatFormat.for_tokenizer(processor, needs_tools=False)
    config = GRPOConfig(token_budget=120, gradient_checkpointing=True)
    step = PolicyStep.of(Learner(model, config, optimizer(model)), config)
    losses: list[float] = []
    norms: list[float] = []
    for counts in (pictures, [0] * len(pictures), pictures):
        every = rows(chat, counts)
        chosen = [every[place] for place in share[state.process_index]]
        numbers, _ = step(every if state.num_processes == 1 else chosen, None)
        losses.append(numbers.loss)
        norms.append(numbers.grad_norm)
    return {"weights": weights(model), "losses": losses, "norms": norms}


class EverySecond(Gallery):
    """Shows pictures in tasks with an even seed only."""

    def reset(self, seed: int = 0, **row: Any) -> Any:
        shown = super().reset(seed, **row)
        return shown if seed % 2 == 0 else "Nothing to see."


def grpo(folder: str) -> dict[str, Any]:
    """Two steps of two groups: of two processes only the first ever sees a picture."""
    processes = make_accelerator(GRPOConfig()).num_processes
    model, processor = tiny_vlm("llava")
    trainer = GRPOTrainer(
        model,
        lambda completion_ids, **_: [sum(ids) / len(ids) for ids in completion_ids],
        GRPOConfig(
            output_dir=folder,
            max_steps=2,
            num_generations=2,
            per_device_train_batch_size=4 // processes,
            max_completion_length=6,
            shuffle_dataset=False,
        ),
        [{"prompt": "Look.", "seed": seed} for seed in range(2)],
        processing_class=processor,
        environment_factory=EverySecond,
        optimizers=optimizer(model),
    )
    trainer.train()
    return _numbers(trainer)


def sft(folder: str) -> dict[str, Any]:
    """Two steps on pairs of rows of which one has a picture."""
    processes = make_accelerator(GRPOConfig()).num_processes
    model, processor = tiny_vlm("llava")
    said = {"role": "assistant", "content": "A maze."}
    talk = [{"role": "user", "content": "What is it?"}, said]
    shown = [{"messages": talk, "image": picture(seed)} for seed in range(2)]
    trainer = SFTTrainer(
        model,
        SFTConfig(
            output_dir=folder,
            max_steps=2,
            per_device_train_batch_size=2 // processes,
            train_sampling_strategy="sequential",
        ),
        [row for one in shown for row in (one, {"messages": talk})],
        processing_class=processor,
        optimizers=optimizer(model),
    )
    trainer.train()
    return _numbers(trainer)


def _numbers(trainer: GRPOTrainer | SFTTrainer) -> dict[str, Any]:
    history = trainer.state.log_history[:-1]
    return {
        "weights": weights(trainer.model),
        "losses": [entry["loss"] for entry in history],
        "norms": [entry["grad_norm"] for entry in history],
    }


def scenarios(folder: str) -> dict[str, dict[str, Any]]:
    """The numbers of each scenario, with the processes that there are."""
    return {
        "policy steps": policy_steps("qwen3_vl", [1, 2, 0, 0, 0], [[0, 1], [2, 3, 4]]),
        "grpo": grpo(folder + "/grpo"),
        "sft": sft(folder + "/sft"),
    }


def main(out: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = scenarios(folder)
    if make_accelerator(GRPOConfig()).is_main_process:
        torch.save(found, out)
    make_accelerator(GRPOConfig()).end_training()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
