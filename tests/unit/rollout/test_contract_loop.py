"""Tools, loop and rewards in the trainer contract; see docs/trainer-contract.md."""

from typing import Any

import pytest

from corral.env import prepare
from corral.records import Episode, Group, Outcome, SpanKind, Task
from corral.rollout import reward_functions, score
from corral.rollout.limits import Limits
from corral.rollout.samples import completion_ids, samples
from corral.training.episode_metrics import episode_metrics
from support.counter import Counter


async def played(table: Any, *says: str, factory: Any = Counter) -> tuple[Any, Episode]:
    (group,) = await table.player(*says, factory=factory).play([table.task()], 1)
    return group.environments[0], group.group.episodes[0]


class Answers(Counter):
    def give(self, what: str) -> Any:
        """Give something.

        Args:
            what: What.
        """
        if what == "error":
            raise ValueError("Game over.")
        if what == "quote":
            raise KeyError("it's")
        things = {
            "text": "plain",
            "int": 3,
            "dict": {"a": [1, True]},
            "none": None,
            "blocks": [{"type": "text", "text": "hi"}],
        }
        return things[what]


@pytest.mark.contract(16)
@pytest.mark.parametrize(
    ("call", "content", "is_failure"),
    [
        (("give", {"what": "text"}), "plain", False),
        (("give", {"what": "int"}), "3", False),
        (("give", {"what": "dict"}), "{'a': [1, True]}", False),
        (("give", {"what": "none"}), "None", False),
        (("give", {"what": "blocks"}), [{"type": "text", "text": "hi"}], False),
        (("give", {"what": "error"}), "{'error': 'Game over.'}", True),
        (("give", {"what": "quote"}), "{'error': '\"it\\'s\"'}", True),
        (("take", {}), "{'error': 'Tool take not found.'}", True),
    ],
)
@pytest.mark.report("P082")
async def test_a_result_has_exactly_this_content(
    table: Any, call: tuple[str, dict[str, Any]], content: Any, is_failure: bool
) -> None:
    said = table.call(call[0], **call[1])
    _, episode = await played(table, said, "ok", factory=Answers)
    assert episode.messages[2] == {"role": "tool", "name": call[0], "content": content}
    assert (episode.tools.calls, episode.tools.failures) == (1, int(is_failure))


@pytest.mark.contract(17)
async def test_frequencies_of_a_right_call_a_wrong_argument_and_no_call(table: Any) -> None:
    said = {
        0: [table.call("increment", step=1), "Done."],
        1: [table.call("increment", pace=1), "Done."],
        2: ["I do not play."],
    }
    turns: dict[str, int] = {}

    def script(key: str, prompt_ids: Any) -> list[int]:
        turn = turns[key] = turns.get(key, -1) + 1
        return table.ids_of(said[int(key.partition("#")[0][-1])][turn] + "<|im_end|>")

    (group,) = await table.player(script=script, factory=Counter).play([table.task()], 3)
    metrics = episode_metrics(group.group.episodes, table.chat.stop_ids)
    assert metrics["tools/call_frequency"] == pytest.approx(2 / 3)
    assert metrics["tools/failure_frequency"] == pytest.approx(1 / 2)
    assert [environment.count for environment in group.environments] == [1, 0, 0]


@pytest.mark.contract(19)
@pytest.mark.parametrize("name", ["reset", "get_reward", "_double", "__init__", "__class__"])
async def test_what_is_no_tool_is_never_called(table: Any, name: str) -> None:
    call = table.call("increment", step=1)
    environment, episode = await played(table, call, table.call(name), "ok", factory=Counter)
    assert episode.messages[4]["content"] == f"{{'error': 'Tool {name} not found.'}}"
    assert environment.count == 1


@pytest.mark.contract(20, 21)
@pytest.mark.report("P002", "P029")
async def test_masks_and_logprobs_tell_sampled_tokens_from_results(table: Any) -> None:
    call = table.call("increment", step=1)
    _, episode = await played(table, call, call + call, "Two and three.")
    group = Group(task=episode.task, episodes=(episode,))
    (row,) = samples([group], [1.0], stop_ids=table.chat.stop_ids)
    mask: list[int] = []
    for span in episode.transcript.spans:
        mask += [int(span.kind is SpanKind.SAMPLED)] * len(span.ids)
    kinds = [span.kind for span in episode.transcript.spans]
    assert kinds.count(SpanKind.TOOL) == 2
    assert list(row.loss_mask) == mask
    assert all(
        (logprob == 0.0) is (not bit) for logprob, bit in zip(row.logprobs, mask, strict=True)
    )
    asked = [list(call.prompt_ids) for call in table.engine.calls]
    said = [span.ids for span in episode.transcript.spans if span.kind is SpanKind.SAMPLED]
    for ids, turn in zip(asked, said, strict=True):
        assert list(row.ids[: len(ids)]) == ids
        assert row.ids[len(ids) : len(ids) + len(turn)] == turn


@pytest.mark.contract(23)
@pytest.mark.report("P069", "P081")
async def test_no_budget_is_ever_exceeded_and_ids_of_the_model_stay(table: Any) -> None:
    said = [table.call("increment", step=1), table.call("increment", step=2), "Three."]
    _, whole = await played(table, *said)
    every = completion_ids(whole)
    edges = {len(every) - 1, len(every), len(every) + 1}
    for budget in sorted({*range(1, len(every), 4), *edges}):
        limits = Limits(episode_tokens=budget)
        player = table.player(*said, factory=Counter, limits=limits)
        (group,) = await player.play([table.task()], 1)
        (episode,) = group.group.episodes
        kept = completion_ids(episode)
        assert len(kept) <= budget
        assert kept == every[: len(kept)]
        assert episode.outcome is (
            Outcome.FINISHED if budget >= len(every) else Outcome.OUT_OF_TOKENS
        )
        # Results that are not in the ids are not in the messages either.
        suffixes = sum(span.kind is SpanKind.TOOL for span in episode.transcript.spans)
        assert table.roles(episode).count("tool") == suffixes


@pytest.mark.contract(25)
@pytest.mark.parametrize("rounds", [0, 1, 3])
async def test_n_rounds_execute_n_times_and_generate_n_plus_one_times(
    table: Any, rounds: int
) -> None:
    limits = Limits(turns=rounds, episode_tokens=4000)
    player = table.player(table.call("increment", step=1), factory=Counter, limits=limits)
    (group,) = await player.play([table.task()], 1)
    assert group.environments[0].count == rounds
    assert len(table.engine.calls) == rounds + 1
    assert group.group.episodes[0].messages[-1]["tool_calls"]


class Plain:
    """An environment without a reward of its own."""

    def reset(self, **row: Any) -> None:
        self.looks = 0

    def look(self) -> str:
        """Look around."""
        self.looks += 1
        return "nothing"


@pytest.mark.contract(34)
@pytest.mark.report("P114")
async def test_rewards_for_two_environments_each_score_their_own_rows(table: Any) -> None:
    def of_counter(environments: list[Any], **_: Any) -> list[float | None]:
        return [env.count / 10 if type(env) is Counter else None for env in environments]

    def of_plain(environments: list[Any], **_: Any) -> list[float | None]:
        return [5.0 + env.looks if type(env) is Plain else None for env in environments]

    says = [table.call("increment", step=3) + table.call("look"), "ok"]
    kinds = {"counter": prepare(Counter), "plain": prepare(Plain)}
    tasks = [table.task(0, environment="counter"), table.task(1, environment="plain")]
    groups = await table.player(*says, kinds=kinds).play(tasks, 2)
    scored = await score(groups, reward_functions([of_counter, of_plain], [1.0, 2.0]))
    assert (scored.names, scored.weights) == (
        ("of_counter", "of_plain", "Counter"),
        (1.0, 2.0, 1.0),
    )
    episodes = [episode for group in scored.groups for episode in group.episodes]
    assert [tuple(episode.rewards.values()) for episode in episodes] == [
        (0.3, None, 3.0),
        (0.3, None, 3.0),
        (None, 6.0, None),
        (None, 6.0, None),
    ]
    assert [episode.reward for episode in episodes] == [3.3, 3.3, 12.0, 12.0]
    is_offered = ["Look around." in table.shown(episode) for episode in episodes]
    assert is_offered == [False, False, True, True]
    metrics = episode_metrics(episodes, table.chat.stop_ids)
    means = {name: metrics[f"rewards/{name}/mean"] for name in scored.names}
    assert means == {"of_counter": 0.3, "of_plain": 6.0, "Counter": 3.0}


@pytest.mark.contract(33)
async def test_synchronous_functions_are_called_in_order_and_before_asynchronous_ones(
    table: Any,
) -> None:
    called: list[str] = []

    def noting(name: str) -> Any:
        def note(**_: Any) -> list[float]:
            called.append(name)
            return [0.0]

        return note

    async def later(**_: Any) -> list[float]:
        called.append("later")
        return [0.0]

    groups = await table.player("ok", factory=Counter).play([table.task()], 1)
    await score(groups, reward_functions([later, noting("first"), noting("second")]))
    assert called == ["first", "second", "later"]


@pytest.mark.contract(32)
async def test_columns_reach_a_function_but_those_it_has_under_other_names(table: Any) -> None:
    seen: dict[str, Any] = {}

    def look(**kwargs: Any) -> list[float]:
        seen.update(kwargs)
        return [0.0, 0.0]

    columns = {"completion": "no", "completion_ids": [1], "answer": 7, "environment": "level"}
    player = table.player("ok", factory=Counter)
    groups = await player.play([table.task(0, **columns)], 2)
    await score(groups, reward_functions(look))
    assert seen["answer"] == [7, 7]
    assert seen["environment"] == ["level", "level"]
    assert seen["completion_ids"] == [completion_ids(e) for e in groups[0].group.episodes]
    assert set(seen) == {
        *("prompts", "completions", "completion_ids", "answer", "environment"),
        *("environments", "trainer_state", "log_extra", "log_metric"),
    }


@pytest.mark.contract(32)
async def test_text_that_is_only_continued_stays_text(table: Any) -> None:
    """Without tools and environment there is no conversation, and no chat template."""
    seen: dict[str, Any] = {}

    def look(prompts: list[str], completions: list[str]) -> list[float]:
        seen.update(prompts=prompts, completions=completions)
        return [1.0, 1.0]

    groups = await table.player(" three.").play([table.task(0)], 2)
    await score(groups, reward_functions(look))
    assert seen == {"prompts": ["Play.", "Play."], "completions": [" three.", " three."]}
    first = groups[0].group.episodes[0].transcript.spans[0]
    assert list(first.ids) == table.ids_of("Play.")
    spoken = [{"role": "user", "content": "Play."}]
    task = Task(index=0, prompt=tuple(spoken), columns={"prompt": spoken}, environment=None, seed=1)
    groups = await table.player(" three.").play([task], 2)
    await score(groups, reward_functions(look))
    assert seen["prompts"] == [spoken] * 2
    assert seen["completions"] == [[{"role": "assistant", "content": " three."}]] * 2


@pytest.mark.contract(32)
async def test_beside_tools_spaces_around_an_answer_are_no_part_of_it(table: Any) -> None:
    _, episode = await played(table, "  Three. \n")
    assert episode.messages[-1] == {"role": "assistant", "content": "Three."}
    alone = await table.one("  Three. ")
    assert alone.messages[-1]["content"] == "  Three. "


@pytest.mark.contract(32)
@pytest.mark.parametrize(
    ("said", "shown"),
    [({"step": "3"}, {"step": 3}), ({"step": "x"}, {"step": "x"}), ({"pace": 3}, {"pace": 3})],
    ids=["read as a number", "not a number", "not an argument"],
)
@pytest.mark.report("P008")
async def test_a_message_shows_the_arguments_that_the_tool_got(
    table: Any, said: dict[str, Any], shown: dict[str, Any]
) -> None:
    environment, episode = await played(table, table.call("increment", **said), "ok")
    call = episode.messages[1]["tool_calls"][0]
    assert call == {"type": "function", "function": {"name": "increment", "arguments": shown}}
    assert environment.count == (3 if shown == {"step": 3} else 0)
