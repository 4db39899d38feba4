"""What a prompt may hold: none of it is trained, and none of it is lost."""

from copy import deepcopy
from typing import Any

import pytest

from corral.records import Episode, Message, Outcome, Task
from corral.rollout.reward_functions import reward_functions
from corral.rollout.rewards import score
from corral.rollout.samples import samples

FEW_SHOT: list[Message] = [
    {"role": "user", "content": "2 + 2?"},
    {
        "role": "assistant",
        "content": "",
        "tool_calls": [
            {"type": "function", "function": {"name": "add", "arguments": {"a": 2, "b": 2}}}
        ],
    },
    {"role": "tool", "name": "add", "content": "4"},
    {"role": "assistant", "content": "It is 4.", "tool_calls": []},
    {"role": "user", "content": "2 + 3?"},
]


def add(a: int, b: int) -> int:
    """Add two numbers.

    Args:
        a: One.
        b: The other.
    """
    return a + b


def asks(prompt: list[Message]) -> Task:
    columns = {"prompt": prompt, "answer": "5"}
    return Task(index=0, prompt=tuple(deepcopy(prompt)), columns=columns, seed=1)


async def played(table: Any, prompt: list[Message], *says: str, **options: Any) -> Any:
    (group,) = await table.player(*says, standalone=[add], **options).play([asks(prompt)], 1)
    return group


def trained_text(table: Any, episode: Episode, group: Any) -> str:
    (row,) = samples([group.group], [1.0], stop_ids=table.chat.stop_ids)
    ids = [token for token, kept in zip(row.ids, row.loss_mask, strict=True) if kept]
    return table.text_of(ids)


@pytest.mark.report("P031")
async def test_answers_in_the_prompt_are_read_and_not_trained(table: Any) -> None:
    group = await played(table, FEW_SHOT, "It is 5.")
    (episode,) = group.group.episodes
    assert trained_text(table, episode, group) == "It is 5.<|im_end|>"
    assert episode.completion_start == len(FEW_SHOT)
    assert "It is 4." in table.shown(episode)


@pytest.mark.report("P036", "P082")
async def test_calls_and_results_in_the_prompt_are_rendered(table: Any) -> None:
    """Also beside a message without text, and one whose list of calls is empty."""
    group = await played(table, FEW_SHOT, "It is 5.")
    (episode,) = group.group.episodes
    shown = table.shown(episode)
    assert '{"name": "add", "arguments": {"a": 2, "b": 2}}</tool_call>' in shown
    without = deepcopy(FEW_SHOT)
    del without[3]["tool_calls"]
    (other,) = (await played(table, without, "It is 5.")).group.episodes
    assert other.transcript == episode.transcript


@pytest.mark.parametrize(
    ("spare", "outcome"), [(0, Outcome.ENVIRONMENT_FAULT), (1, Outcome.OUT_OF_TOKENS)]
)
@pytest.mark.report("P021")
async def test_a_prompt_is_whole_or_not_played(table: Any, spare: int, outcome: Outcome) -> None:
    whole, short = (table.chat.prompt_ids(each, None) for each in (FEW_SHOT, FEW_SHOT[-1:]))
    player = table.player("It is 5.", context=len(whole) + spare)
    tasks = [asks(FEW_SHOT), asks(FEW_SHOT[-1:])]
    (long, _) = [group.group.episodes[0] for group in await player.play(tasks, 1)]
    assert long.outcome is outcome
    assert list(long.transcript.ids())[: len(whole)] == (whole if spare else [])
    asked = [list(call.prompt_ids) for call in table.engine.calls]
    assert asked == [whole, short] if spare else [short]


@pytest.mark.report("P033")
async def test_what_a_tool_said_is_told_from_what_the_model_said(table: Any) -> None:
    def parrots(completions: list[list[Message]], answer: list[str]) -> list[float]:
        said = [[m["content"] for m in one if m["role"] == "assistant"] for one in completions]
        return [float(any(a in text for text in own)) for own, a in zip(said, answer, strict=True)]

    group = await played(table, FEW_SHOT[-1:], table.call("add", a=2, b=3), "I do not know.")
    (completion,) = [one.messages[one.completion_start :] for one in group.group.episodes]
    assert [(m["role"], m["content"]) for m in completion] == [
        ("assistant", ""),
        ("tool", "5"),
        ("assistant", "I do not know."),
    ]
    scored = await score([group], reward_functions(parrots))
    assert scored.groups[0].episodes[0].reward == 0.0


async def test_a_prompt_that_ends_with_an_answer_is_followed_by_a_new_one(table: Any) -> None:
    """As in TRL 1.16, which renders every prompt with a generation prompt."""
    prompt = FEW_SHOT[:-1]
    (group,) = await table.player("Indeed.", standalone=[add]).play([asks(prompt)], 1)
    (episode,) = group.group.episodes
    shown = table.shown(episode)
    opened = "It is 4.<|im_end|>\n<|im_start|>assistant\nIndeed.<|im_end|>"
    assert shown.endswith(opened)
    assert trained_text(table, episode, group) == "Indeed.<|im_end|>"
