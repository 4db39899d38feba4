"""Environment lifetime in the trainer contract; see docs/trainer-contract.md."""

from copy import deepcopy
from typing import Any

import pytest

from corral.env import prepare
from corral.records import Episode, Task
from corral.rollout.samples import samples
from support.counter import Counter

SAID = {"type": "text", "text": "Play."}


def asks(prompt: Any, **columns: Any) -> Task:
    messages = prompt if isinstance(prompt, list) else [{"role": "user", "content": prompt}]
    row = {"prompt": prompt, **columns}
    return Task(index=0, prompt=tuple(deepcopy(messages)), columns=row, environment=None, seed=1)


async def played(table: Any, task: Task, *says: str, factory: Any = Counter) -> Episode:
    (group,) = await table.player(*says, factory=factory).play([task], 1)
    return group.group.episodes[0]


@pytest.mark.contract(7)
async def test_an_instance_stays_with_its_row_whatever_the_batch_before_was(table: Any) -> None:
    player = table.player("ok", kinds={"a": prepare(Counter), "b": prepare(Counter)})
    seen = []
    for names in (["a", "a", "b"], ["b", "a"], ["b", "b", "a", "a"]):
        tasks = [table.task(index, environment=name) for index, name in enumerate(names)]
        groups = await player.play(tasks, 1)
        made: dict[str, list[Any]] = {"a": [], "b": []}
        for name, group in zip(names, groups, strict=True):
            made[name] += group.environments
        seen.append(made)
    first, second, third = seen
    assert second["a"] == first["a"][:1]
    assert second["b"] == first["b"]
    assert third["a"] == first["a"]
    assert third["b"][:1] == first["b"]
    assert len({id(one) for one in third["a"] + third["b"]}) == 4


@pytest.mark.contract(8)
async def test_a_prompt_of_messages_reaches_reset_as_it_stands_in_the_row(table: Any) -> None:
    rows: list[dict[str, Any]] = []

    class Looks(Counter):
        def reset(self, **row: Any) -> None:
            rows.append(row)

    prompt = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Play."}]
    await played(table, asks(prompt, level=3, answer=None), "ok", factory=Looks)
    assert rows == [{"prompt": prompt, "level": 3, "answer": None}]


@pytest.mark.contract(8)
async def test_a_row_without_a_prompt_gives_reset_none(table: Any) -> None:
    rows: list[dict[str, Any]] = []

    class Looks(Counter):
        def reset(self, **row: Any) -> str:
            rows.append(row)
            return "Begin."

    empty = ({"role": "user", "content": ""},)
    task = Task(index=0, prompt=empty, columns={"level": 3}, environment=None, seed=1)
    episode = await played(table, task, "ok", factory=Looks)
    assert rows == [{"level": 3}]
    assert episode.messages[0] == {"role": "user", "content": "Begin."}


@pytest.mark.contract(9)
@pytest.mark.parametrize(
    ("prompt", "observed", "content"),
    [
        ("Play.", None, "Play."),
        ("Play.", " Now.", "Play. Now."),
        ("Play.", [{"type": "text", "text": "Now."}], [SAID, {"type": "text", "text": "Now."}]),
        ([{"role": "user", "content": [SAID]}], " Now.", [SAID, {"type": "text", "text": " Now."}]),
        ([{"role": "user", "content": [SAID]}], None, [SAID]),
        ([{"role": "system", "content": "Play."}], " Now.", "Play. Now."),
    ],
    ids=["nothing", "text", "blocks", "text on blocks", "nothing on blocks", "any role"],
)
async def test_what_reset_returns_ends_the_last_message_and_leaves_the_row_alone(
    table: Any, prompt: Any, observed: Any, content: Any
) -> None:
    task = asks(prompt, observed=observed)
    before = deepcopy((task.columns, task.prompt))
    episode = await played(table, task, "ok")
    assert episode.messages[0]["content"] == content
    assert len(episode.messages) == 2
    assert (task.columns, task.prompt) == before


@pytest.mark.contract(12)
async def test_members_whose_resets_differ_are_each_asked_and_trained_with_their_own(
    table: Any,
) -> None:
    dealt = iter(["one", "two", "three"])

    class Deals(Counter):
        def reset(self, **row: Any) -> str:
            return f" Card {next(dealt)}."

    (group,) = await table.player("ok", factory=Deals).play([table.task()], 3)
    episodes = group.group.episodes
    shown = {episode.messages[0]["content"] for episode in episodes}
    assert shown == {"Play. Card one.", "Play. Card two.", "Play. Card three."}
    asked = {call.key.partition("#")[0]: call.prompt_ids for call in table.engine.calls}
    rows = samples([group.group], [1.0, 0.0, -1.0], stop_ids=table.chat.stop_ids)
    for episode, row in zip(episodes, rows, strict=True):
        own = table.chat.prompt_ids(episode.messages[:1], prepare(Counter).tools.schemas)
        assert tuple(asked[f"0/{episode.member}"]) == tuple(own)
        assert list(row.ids[: len(own)]) == list(own)
