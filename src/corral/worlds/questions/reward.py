"""The same check for models that answer in their last message, without a tool."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from corral.worlds.questions.env import Check, scored


def reward_of(check: Check) -> Callable[..., Awaitable[list[float]]]:
    """A reward function for trainers that scores what the model said last; it is async.

    ::

        GRPOTrainer(reward_funcs=reward_of(check), train_dataset=rows, ...)
        scores = await reward_of(check)(completions=["12"], solution=["12"])

    ``check`` gets the text of the completion's last message of the model, and the row's columns.
    """

    async def reward(completions: Sequence[Any], **columns: Any) -> list[float]:
        count = len(completions)
        lists = {
            name: values
            for name, values in columns.items()
            if isinstance(values, list) and len(values) == count
        }
        return [
            await scored(check, said_last(said), {name: lists[name][place] for name in lists})
            for place, said in enumerate(completions)
        ]

    reward.__name__ = getattr(check, "__name__", "check")
    return reward


def said_last(completion: Any) -> str:
    """The text of the model's last message; of a completion that is text, all of it."""
    if isinstance(completion, str):
        return completion
    texts = [message.get("content") for message in completion if message["role"] == "assistant"]
    return _text(texts[-1]) if texts else ""


def _text(content: Any) -> str:
    if not isinstance(content, list):
        return content or ""
    return "".join(block.get("text", "") for block in content)
