"""Training on what a user's own function played."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
import torch

from corral import GRPOConfig, GRPOTrainer, UsageError
from corral.engines.scripted import ScriptedEngine
from corral.training.checkpoint import checkpoints, step_of
from support.tiny_models import tiny_model, tiny_tokenizer

TOKENIZER = tiny_tokenizer()
ROWS = [{"prompt": [{"role": "user", "content": f"Task {n}."}], "goal": n} for n in range(4)]


class Letters:
    """Writes a letter for each member of a group, and remembers how it was called."""

    def __init__(self, **changes: Any) -> None:
        self.changes = changes
        self.calls: list[tuple[list[str], int, int, bool]] = []

    def __call__(self, prompts: list[Any], trainer: GRPOTrainer) -> dict[str, Any]:
        asyncio.run(asyncio.sleep(0))  # a function may have a loop of its own
        version = getattr(trainer.engine, "version", -1)
        texts = [prompt[-1]["content"] for prompt in prompts]
        self.calls.append((texts, trainer.state.global_step, version, trainer.model.training))
        apply = trainer.processing_class.apply_chat_template
        ids = [apply(p, add_generation_prompt=True)["input_ids"] for p in prompts]
        ends = trainer.processing_class.eos_token_id
        letters = [97 + place % 4 for place in range(len(prompts))]
        return {
            "prompt_ids": ids,
            "completion_ids": [[letter, 65, letter, ends] for letter in letters],
            "logprobs": None,
            "env_mask": [[1, 0, 1, 1]] * len(prompts),
            "letter": letters,
            "when": trainer.state.global_step,
        } | self.changes


def reward(letter: list[int], goal: list[int], when: list[int], **kwargs: Any) -> list[float]:
    assert len(letter) == len(goal) == len(when) == 8
    return [float(one == 98) for one in letter]


def trainer(folder: Path, function: Any, **options: Any) -> GRPOTrainer:
    names = ("environment_factory", "tools", "reward_funcs")
    known = {name: options.pop(name) for name in names if name in options}
    config: dict[str, Any] = {
        "output_dir": str(folder / "run"),
        "max_steps": 3,
        "per_device_train_batch_size": 8,
        "num_generations": 4,
        "learning_rate": 1e-2,
    }
    return GRPOTrainer(
        tiny_model(TOKENIZER),
        args=GRPOConfig(**(config | options)),
        train_dataset=ROWS,
        processing_class=TOKENIZER,
        engine=ScriptedEngine({}, context=100),
        rollout_func=function,
        **({"reward_funcs": reward} | known),
    )


def logprob(model: Any, prompt: list[int], token: int) -> float:
    with torch.no_grad():
        return float(model(torch.tensor([prompt])).logits[0, -1].log_softmax(-1)[token])


def test_the_model_learns_from_what_the_function_returns(tmp_path: Path) -> None:
    play = Letters()
    made = trainer(tmp_path, play)
    prompt = [*TOKENIZER.encode("<|im_start|>assistant\n")]
    before = logprob(made.model, prompt, 98)
    made.train()
    assert logprob(made.model, prompt, 98) > before + 0.05
    history = made.state.log_history[:-1]
    assert [entry["reward"] for entry in history] == [0.25] * 3
    assert [entry["completions/mean_length"] for entry in history] == [3.0] * 3
    assert history[0]["num_tokens"] == sum(map(len, _prompts(play.calls[0][0]))) + 8 * 3


def _prompts(texts: list[str]) -> list[list[int]]:
    messages = [[{"role": "user", "content": text}] for text in texts]
    return [
        TOKENIZER.apply_chat_template(one, add_generation_prompt=True)["input_ids"]
        for one in messages
    ]


@pytest.mark.contract(31)
def test_each_call_gets_a_prompt_for_each_completion_and_the_newest_weights(tmp_path: Path) -> None:
    play = Letters()
    made = trainer(tmp_path, play, shuffle_dataset=False)
    made.train()
    assert [texts for texts, *_ in play.calls] == [
        ["Task 0."] * 4 + ["Task 1."] * 4,
        ["Task 2."] * 4 + ["Task 3."] * 4,
        ["Task 0."] * 4 + ["Task 1."] * 4,
    ]
    assert [(step, version) for _, step, version, _ in play.calls] == [(0, 0), (1, 1), (2, 2)]
    assert not any(is_training for *_, is_training in play.calls)


def test_its_episodes_are_saved_with_their_tokens_and_columns(tmp_path: Path) -> None:
    made = trainer(tmp_path, Letters(), max_steps=1, shuffle_dataset=False)
    made.train()
    (file,) = made.run_folder.episode_files()
    saved = list(file.read())
    assert [one.episode.task.columns["letter"] for one in saved] == [97, 98, 99, 100] * 2
    assert [one.episode.reward for one in saved] == [0.0, 1.0, 0.0, 0.0] * 2
    assert saved[0].episode.transcript.spans[1].logprobs is not None
    assert [span.kind for span in saved[0].episode.transcript.spans] == [
        "prompt",
        "sampled",
        "tool",
        "sampled",
    ]
    assert saved[1].advantage == pytest.approx(1.4997, abs=1e-3)


def test_a_completion_without_tokens_leaves_its_group(tmp_path: Path) -> None:
    ends = TOKENIZER.eos_token_id
    ids: list[list[int]] = [[97, ends], [], [98, ends], [99, ends]] * 2

    def score(completion_ids: list[list[int]], **kwargs: Any) -> list[float]:
        assert completion_ids == [[97, ends], [98, ends], [99, ends]] * 2
        return [float(ids[0] == 98) for ids in completion_ids]

    play = Letters(completion_ids=ids, env_mask=None)
    made = trainer(tmp_path, play, reward_funcs=score, max_steps=1)
    made.train()
    entry = made.state.log_history[0]
    assert entry["reward"] == pytest.approx(1 / 3)
    assert entry["outcome/environment_fault"] == 0.25


@pytest.mark.contract(31)
def test_a_missing_key_ends_the_run_and_keeps_what_was_learned(tmp_path: Path) -> None:
    play = Letters()

    def forgets(prompts: list[Any], of: GRPOTrainer) -> dict[str, Any]:
        returned = play(prompts, of)
        return returned if of.state.global_step < 2 else {"prompt_ids": returned["prompt_ids"]}

    made = trainer(tmp_path, forgets)
    with pytest.raises(ValueError, match=r"must return keys \['completion_ids', 'logprobs'\]"):
        made.train()
    assert made.state.global_step == 2
    assert [step_of(path) for path in checkpoints(made.session.checkpoint_folder)] == [2]


def test_the_model_itself_can_generate_in_the_function(tmp_path: Path) -> None:
    def generate(prompts: list[Any], of: GRPOTrainer) -> dict[str, Any]:
        tokenizer = of.processing_class
        ids = [
            tokenizer.apply_chat_template(p, add_generation_prompt=True)["input_ids"]
            for p in prompts
        ]
        out = [
            of.model.generate(torch.tensor([one]), max_new_tokens=4, do_sample=True)[0].tolist()
            for one in ids
        ]
        new = [whole[len(one) :] for whole, one in zip(out, ids, strict=True)]
        return {
            "prompt_ids": ids,
            "completion_ids": new,
            "logprobs": None,
            "letter": [each[0] for each in new],
            "when": 0,
        }

    made = trainer(tmp_path, generate, max_steps=2)
    made.train()
    assert made.state.log_history[0]["completions/max_length"] <= 4


@pytest.mark.parametrize("name", ["environment_factory", "tools"])
def test_a_function_beside_a_loop_that_would_never_run_is_refused(
    tmp_path: Path, name: str
) -> None:
    class World:
        def reset(self, **kwargs: Any) -> None: ...

    def tool(text: str) -> str:
        """Say something.

        Args:
            text: What to say.
        """
        return text

    value = World if name == "environment_factory" else [tool]
    with pytest.raises(UsageError, match=f"so {name} would never be used"):
        trainer(tmp_path, Letters(), **{name: value})


def test_what_cannot_be_called_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"rollout_func is 'mine'.*\(prompts, trainer\)"):
        trainer(tmp_path, "mine")
