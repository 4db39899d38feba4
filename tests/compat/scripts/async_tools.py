"""Tools without state: asynchronous ones, called one by one and together, and an ordinary one."""

import asyncio
import os

from datasets import Dataset
from trl import GRPOConfig, GRPOTrainer


async def population(city: str) -> int:
    """How many people live in a city.

    Args:
        city: Its name.
    """
    await asyncio.sleep(0.001)
    return {"Bonn": 336000, "Köln": 1087000}[city]


async def distance(start: str, end: str = "Bonn") -> dict:
    """How far it is.

    Args:
        start: Where from.
        end: Where to.
    """
    return {"from": start, "to": end, "km": 27.5}


def add(a: float, b: float) -> float:
    """Add two numbers.

    Args:
        a: One number.
        b: The other number.
    """
    return a + b


async def answers(completions, answer, **kwargs):
    await asyncio.sleep(0)
    return [
        float(str(right) in completion[-1]["content"])
        for completion, right in zip(completions, answer, strict=True)
    ]


def calls(completions, **kwargs):
    return [float(sum(m["role"] == "tool" for m in completion)) for completion in completions]


dataset = Dataset.from_list(
    [
        {"prompt": [{"role": "user", "content": "Who lives in Bonn?"}], "answer": "336000"},
        {"prompt": [{"role": "user", "content": "Who lives in Köln?"}], "answer": "1087000"},
    ]
)
trainer = GRPOTrainer(
    model=os.environ["MODEL"],
    reward_funcs=[answers, calls],
    train_dataset=dataset,
    tools=[population, distance, add],
    args=GRPOConfig(
        output_dir=os.environ["OUTPUT_DIR"],
        per_device_train_batch_size=8,
        num_generations=4,
        max_completion_length=400,
        max_steps=2,
        scale_rewards="batch",
        logging_steps=1,
        report_to="none",
        bf16=False,
    ),
)
trainer.train()
trainer.end()
