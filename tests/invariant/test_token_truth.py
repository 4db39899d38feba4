"""What is trained is what was sampled: every token once, with the probability it was drawn with."""

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from corral import GRPOConfig, GRPOTrainer
from corral.algorithms import collate, cut, token_logprobs
from corral.chat import ChatFormat
from corral.env import prepare
from corral.records import Episode, Group, Sample, SamplingParams, SpanKind, Task
from corral.rollout import Limits, Player, samples
from support.forced_engine import Call, ForcedEngine, ForcedTurn
from support.template_zoo import EXTENDABLE
from support.tiny_models import tiny_model
from support.toy_tokenizers import TAGS, byte_level_tokenizer, merging_tokenizer

MEMBERS = 3


class Echo:
    def reset(self, **kwargs: Any) -> str:
        return "hello\n\n"

    def say(self, text: str) -> str:
        """Say something.

        Args:
            text: What to say.
        """
        if text == "boom":
            raise ValueError("hello boom")
        return text * 2

    async def later(self) -> None:
        """Say nothing, later."""
        await asyncio.sleep(0)


FRAME = ('{"name": "say", "arguments": {"text": "', '"}}')
"""One token each, so that calls are short; spelled in small pieces they are many."""


def with_frame(make: Any, **fixed: Any) -> Any:
    tags = (*FRAME, *fixed.pop("plain_tags", ()))
    return lambda **options: make(plain_tags=tags, **fixed, **options)


TOKENIZERS = {
    "bytes": with_frame(byte_level_tokenizer),
    "ambiguous merges": with_frame(merging_tokenizer),
    "pad of its own": with_frame(merging_tokenizer, pad="<pad>"),
    "special tags": with_frame(byte_level_tokenizer, tags=TAGS),
    "plain tags": with_frame(merging_tokenizer, plain_tags=TAGS),
    "another eos": with_frame(merging_tokenizer, eos="<eos>"),
}
PIECES = [
    '<tool_call>\n{"name": "say", "arguments": {"text": "hello"}}\n</tool_call>',
    '<tool_call>\n{"name": "say", "arguments": {"text": "boom"}}\n</tool_call>',
    '<tool_call>\n{"name": "say", "arguments": {"text": "aaaa\\n\\n<|im_end|>"}}\n</tool_call>',
    '<tool_call>{"name": "later", "arguments": {}}</tool_call>',
    '<tool_call>{"name": "nobody", "arguments": {}}</tool_call>',
    "<tool_call>{broken}</tool_call>",
    "<think>\nhello\n</think>\n\n",
    "</think>",
    "hello aaa ünïcode",
]


@dataclass(frozen=True)
class Turn:
    free: int
    """Tokens really sampled."""
    pieces: list[str]
    grain: int
    """Text is encoded so many letters at a time: the ids are not those of the whole text."""
    is_ended: bool

    def forced(self, tokenizer: Any, stop: int) -> ForcedTurn:
        text = "".join(self.pieces)
        parts = [text[i : i + self.grain] for i in range(0, len(text), self.grain)]
        ids = [
            token for part in parts for token in tokenizer.encode(part, add_special_tokens=False)
        ]
        # A stop token within the text would end the turn, as it does when it is sampled.
        ids = [token for token in ids if token != stop] + [stop] * self.is_ended
        return ForcedTurn(free=self.free, ids=tuple(ids))


TURNS = st.builds(
    Turn,
    free=st.integers(0, 6),
    pieces=st.lists(st.sampled_from(PIECES[:5]) | st.sampled_from(PIECES), min_size=1, max_size=2),
    grain=st.sampled_from([3, 1000, 1000]),
    is_ended=st.booleans() | st.just(True),
)


@dataclass(frozen=True)
class Played:
    calls: list[Call]
    episodes: list[Episode]
    rows: list[Sample]


def play(
    model: Any,
    chat: ChatFormat,
    script: list[list[ForcedTurn]],
    limits: Limits,
    temperature: float,
    *,
    keeps_kv: bool,
) -> Played:
    def turn_of(conversation: str, turn: int) -> ForcedTurn | None:
        turns = script[int(conversation.partition("/")[2])]
        return turns[turn] if turn < len(turns) else ForcedTurn(free=8, ids=(min(chat.stop_ids),))

    engine = ForcedEngine(model, turn_of, keep_kv=keeps_kv)
    sampling = SamplingParams(
        max_new_tokens=1, stop_ids=chat.stop_ids, temperature=temperature, seed=0
    )
    player = Player(engine, chat, kinds={None: prepare(Echo)}, limits=limits, sampling=sampling)
    task = Task(index=0, prompt=({"role": "user", "content": "Play."},), seed=11)

    async def run() -> list[Episode]:
        (played,) = await player.play([task], MEMBERS)
        await player.aclose()
        await engine.aclose()
        return list(played.group.episodes)

    episodes = asyncio.run(run())
    rows = samples(
        [Group(task=task, episodes=tuple(episodes))], [1.0] * MEMBERS, stop_ids=chat.stop_ids
    )
    return Played(engine.calls, episodes, rows)


def check_rows_are_what_the_engine_saw(played: Played) -> None:
    assert len(played.rows) == MEMBERS
    for member, row in enumerate(played.rows):
        calls = [call for call in played.calls if call.conversation == f"0/{member}"]
        is_trained = [0] * len(row.ids)
        consumed: tuple[int, ...] = ()
        for call in calls:
            assert call.prompt_ids[: len(consumed)] == consumed
            consumed = call.prompt_ids + call.sampled.ids
            for place in range(len(call.prompt_ids), len(consumed)):
                is_trained[place] = 1
        assert row.ids == consumed
        assert list(row.loss_mask) == is_trained
        drawn = [logprob for call in calls for logprob in call.sampled.logprobs]
        assert [p for p, trained in zip(row.logprobs, is_trained, strict=True) if trained] == drawn


def check_each_token_is_trained_once(played: Played, packing: bool, budget: int) -> list[Any]:
    lengths = [len(row.ids) for row in played.rows]
    cuts = cut(lengths, budget, packing=packing)
    batches = [collate(played.rows, indices, packing=packing) for indices in cuts]
    sampled = sum(len(call.sampled.ids) for call in played.calls)
    assert sum(episode.transcript.sampled_count() for episode in played.episodes) == sampled
    assert sum(len(batch.targets) for batch in batches) == sampled
    seen: list[int] = []
    for batch in batches:
        for row, index in enumerate(batch.indices):
            seen.append(index)
            spans = played.episodes[index].transcript.spans
            expected = [t for s in spans if s.kind is SpanKind.SAMPLED for t in s.ids]
            assert batch.targets[batch.row == row].tolist() == expected
    assert sorted(seen) == list(range(MEMBERS))
    return batches


def worst_ratio(model: Any, batches: list[Any], temperature: float) -> float:
    worst = 0.0
    for batch in batches:
        scored = token_logprobs(model, batch, temperature=temperature, chunk_tokens=50)
        ratio = (scored.logprobs.detach() - batch.sampling_logprobs).exp()
        worst = max(worst, (ratio - 1).abs().max().item())
    return worst


@settings(
    max_examples=20,
    # A smaller example would take minutes to find.
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)
@given(
    template=st.sampled_from(sorted(EXTENDABLE)),
    tokenizer=st.sampled_from(sorted(TOKENIZERS)),
    family=st.sampled_from(["llama", "qwen3"]),
    turns=st.lists(st.lists(TURNS, min_size=1, max_size=3), min_size=MEMBERS, max_size=MEMBERS),
    limits=st.builds(
        Limits,
        turns=st.none() | st.integers(1, 3),
        turn_tokens=st.none() | st.integers(20, 200),
        episode_tokens=st.integers(30, 400),
    ),
    temperature=st.sampled_from([0.6, 1.0]),
    packing=st.booleans(),
    budget=st.sampled_from([1, 1500, 10_000]),
)
@pytest.mark.timeout(200)
@pytest.mark.contract(20)
@pytest.mark.report("P001", "P002", "P017", "P018")
def test_what_is_trained_is_what_was_sampled(
    template: str,
    tokenizer: str,
    family: str,
    turns: list[list[Turn]],
    limits: Limits,
    temperature: float,
    packing: bool,
    budget: int,
) -> None:
    made = TOKENIZERS[tokenizer](chat_template=EXTENDABLE[template])
    kind = prepare(Echo)
    chat = ChatFormat.for_tokenizer(made, tools=kind.tools.schemas)
    model = tiny_model(made, family=family, max_position_embeddings=2048)
    stop = min(chat.stop_ids)
    script = [[turn.forced(made, stop) for turn in member] for member in turns]

    played = play(model, chat, script, limits, temperature, keeps_kv=True)
    check_rows_are_what_the_engine_saw(played)
    batches = check_each_token_is_trained_once(played, packing, budget)
    assert worst_ratio(model, batches, temperature) < 1e-5

    afresh = play(model, chat, script, limits, temperature, keeps_kv=False)
    assert [row.ids for row in afresh.rows] == [row.ids for row in played.rows]
    assert [row.loss_mask for row in afresh.rows] == [row.loss_mask for row in played.rows]


@pytest.mark.report("P001", "P051")
def test_the_trainer_finds_ratio_one_at_learning_rate_0(tmp_path: Any) -> None:
    tokenizer = merging_tokenizer(chat_template=EXTENDABLE["drops all thoughts from history"])
    model = tiny_model(tokenizer)
    call = Turn(4, [PIECES[6], PIECES[0]], 3, True).forced(tokenizer, tokenizer.eos_token_id)
    end = ForcedTurn(free=20, ids=(tokenizer.eos_token_id,))
    trainer = GRPOTrainer(
        model,
        lambda completion_ids, **kwargs: [float(ids[0]) for ids in completion_ids],
        GRPOConfig(
            output_dir=str(tmp_path),
            max_steps=2,
            learning_rate=0.0,
            temperature=0.6,
            num_generations=4,
            max_completion_length=300,
            importance_sampling_mode="token_truncate",
        ),
        [{"prompt": "Play."}, {"prompt": "Play again."}],
        processing_class=tokenizer,
        environment_factory=Echo,
        engine=ForcedEngine(model, lambda _, turn: call if turn < 2 else end),
    )
    before = [parameter.clone() for parameter in model.parameters()]
    trainer.train()
    assert all(map(torch.equal, before, model.parameters()))
    for entry in trainer.state.log_history[:-1]:
        assert entry["tools/call_frequency"] > 0.5
        assert entry["sampling/sampling_logp_difference/max"] < 1e-5
        for end in ("min", "max"):
            ratio = entry[f"sampling/importance_sampling_ratio/{end}"]
            assert ratio == pytest.approx(1.0, abs=1e-5)
