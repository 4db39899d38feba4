"""Three steps of each path through the GRPO trainer, on a tiny random model."""

import json
import random
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import LoraConfig
from transformers import AutoModelForCausalLM, AutoTokenizer

from corral import GRPOConfig, GRPOTrainer, UsageError
from corral.training.precise_head import PreciseHead
from support.tiny_models import tiny_model, tiny_tokenizer

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:torch.*")


class Letters:
    """Rewards the share of lower-case letters in what the model said to its tool, or 0.5."""

    def reset(self, goal: str = "", **kwargs: Any) -> str:
        self.goal, self.said = goal, ""
        return f"Say {goal}."

    def say(self, text: str) -> str:
        """Say something.

        Args:
            text: What to say.
        """
        self.said = text
        return text.upper()

    def get_reward(self) -> float:
        return sum(letter.islower() for letter in self.said) / max(len(self.said), 1)


class Numbers:
    def reset(self, **kwargs: Any) -> None:
        self.total = 0

    async def add(self, n: int) -> int:
        """Add a number.

        Args:
            n: The number.
        """
        self.total += n
        return self.total


def by_length(completions: list[Any], **kwargs: Any) -> list[float]:
    return [float(len(str(completion[0]["content"]))) for completion in completions]


def by_parity(completion_ids: list[list[int]], **kwargs: Any) -> list[float]:
    return [sum(token % 2 for token in ids) / len(ids) for ids in completion_ids]


ROWS = [{"prompt": f"Task {number}.", "goal": "abc"} for number in range(4)]
SHORT: dict[str, Any] = {
    "max_steps": 3,
    "per_device_train_batch_size": 8,
    "num_generations": 4,
    "max_completion_length": 12,
    "learning_rate": 1e-3,
    "seed": 3,
}


def trainer(tmp_path: Path, model: Any, reward: Any = by_parity, **options: Any) -> GRPOTrainer:
    """A trainer in ``Letters`` unless the options say otherwise; unknown options configure it."""
    names = ("train_dataset", "environment_factory", "tools", "peft_config", "processing_class")
    known = {name: options.pop(name) for name in names if name in options}
    chosen = {"train_dataset": ROWS, "environment_factory": Letters} | known
    args = GRPOConfig(output_dir=str(tmp_path / "run"), **(SHORT | options))
    return GRPOTrainer(model=model, reward_funcs=reward, args=args, **chosen)


def weights(model: Any) -> torch.Tensor:
    return torch.cat([parameter.detach().flatten().clone() for parameter in model.parameters()])


def steps_of(made: GRPOTrainer) -> list[dict[str, Any]]:
    """The log without what the run came to in the end."""
    return [entry for entry in made.state.log_history if "loss" in entry]


def learned(made: GRPOTrainer) -> torch.Tensor:
    """Train, check what any run must have done, and return how far each weight moved."""
    before = weights(made.model)
    output = made.train()
    assert output.global_step == made.args.max_steps == len(steps_of(made))
    lines = (made.run_folder.path / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == [1, 2, 3]
    for entry in made.state.log_history:
        values = [value for value in entry.values() if isinstance(value, float)]
        assert all(torch.tensor(values).isfinite()), entry
    return weights(made.model) - before


PATHS: dict[str, dict[str, Any]] = {
    "plain": {},
    "bf16": {"bf16": True},
    "gradient checkpointing": {"gradient_checkpointing": True},
    "packing": {"packing": True, "token_budget": 300},
    "one row a micro-batch": {"token_budget": 1},
    "reference model": {"beta": 0.1, "num_iterations": 2},
    "two passes": {"num_iterations": 2},
    "several steps a generation": {"steps_per_generation": 3, "per_device_train_batch_size": 4},
    "steps and passes": {
        "steps_per_generation": 4,
        "gradient_accumulation_steps": 2,
        "per_device_train_batch_size": 2,
        "num_iterations": 2,
    },
    "entropy": {"top_entropy_quantile": 0.5, "entropy_coef": 0.01},
    "off-policy mask": {"off_policy_mask_threshold": 0.01, "num_iterations": 2},
    "no correction": {"importance_sampling_correction": False},
    "batch scale": {"scale_rewards": "batch", "loss_type": "grpo"},
    "filtered sampling": {"top_p": 0.9, "top_k": 20, "min_p": 0.01, "temperature": 0.7},
    "rollout in small batches": {"max_batch": 2},
    "stops when done": {"stop_when_done": True, "max_tool_calling_iterations": 1},
}


@pytest.mark.parametrize("path", sorted(PATHS))
def test_a_path_trains(tmp_path: Path, model_folder: Path, path: str) -> None:
    moved = learned(trainer(tmp_path, str(model_folder), **PATHS[path]))
    assert moved.abs().max() > 1e-4


@pytest.mark.parametrize(
    "loss_type", ["grpo", "bnpo", "dr_grpo", "cispo", "sapo", "luspo", "vespo"]
)
def test_a_loss_trains(tmp_path: Path, model_folder: Path, loss_type: str) -> None:
    options: dict[str, Any] = {"loss_type": loss_type, "epsilon_high": 3.0, "num_iterations": 3}
    assert learned(trainer(tmp_path, str(model_folder), **options)).abs().max() > 1e-4


@pytest.mark.report("P058")
def test_an_adapter_is_all_that_an_adapter_run_changes(tmp_path: Path, model_folder: Path) -> None:
    config = LoraConfig(r=4, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM")
    made = trainer(tmp_path, str(model_folder), peft_config=config, bf16=True, beta=0.1)
    before = {name: value.clone() for name, value in made.model.state_dict().items()}
    made.train()
    changed = {n for n, v in made.model.state_dict().items() if not torch.equal(v, before[n])}
    assert changed
    assert all("lora_" in name for name in changed)
    (saved,) = (made.run_folder.path / "checkpoints" / "grpo").iterdir()
    assert (saved / "model.safetensors").stat().st_size < 50_000


@pytest.mark.contract(40)
@pytest.mark.report("P058")
def test_an_adapter_is_pulled_back_to_the_model_without_it(
    tmp_path: Path, model_folder: Path
) -> None:
    config = LoraConfig(r=4, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM")
    made = trainer(tmp_path, str(model_folder), peft_config=config, beta=0.1, learning_rate=3e-2)
    made.train()
    first, *later = [entry["kl"] for entry in steps_of(made) if "kl" in entry]
    assert first == pytest.approx(0.0, abs=1e-6)  # a fresh adapter adds nothing
    assert max(later) > 1e-4


def test_the_head_computes_in_float32_where_that_is_asked_for(
    tmp_path: Path, model_folder: Path
) -> None:
    options: dict[str, Any] = {"bf16": True, "cast_lm_head_to_fp32": True, "beta": 0.1}
    made = trainer(tmp_path, str(model_folder), **options)
    assert isinstance(made.model.lm_head, PreciseHead)
    assert isinstance(made.ref_model.lm_head, PreciseHead)
    assert learned(made).abs().max() > 1e-4


def test_a_saved_model_loads_with_its_template(tmp_path: Path) -> None:
    plain = tiny_tokenizer(chat_template=None)
    made = trainer(tmp_path, tiny_model(plain, family="qwen3"), processing_class=plain)
    made.train()
    made.save_model(tmp_path / "saved")
    again = AutoModelForCausalLM.from_pretrained(tmp_path / "saved", dtype=torch.float32)
    torch.testing.assert_close(weights(again), weights(made.model))
    follow_up = trainer(tmp_path / "more", str(tmp_path / "saved"))
    assert follow_up.processing_class.chat_template == made.chat.template
    assert follow_up.chat.template is None
    assert plain.chat_template is None
    made.end()


@pytest.mark.contract(34)
def test_several_environments_each_play_their_own_rows(tmp_path: Path, model_folder: Path) -> None:
    rows = [
        {"prompt": "Talk.", "environment": "letters", "goal": "abc"},
        {"prompt": "Count.", "environment": "numbers", "goal": None},
    ]
    made = trainer(
        tmp_path,
        str(model_folder),
        train_dataset=rows,
        environment_factory={"letters": Letters, "numbers": Numbers},
    )
    learned(made)
    entry = steps_of(made)[-1]
    assert entry["rewards/Letters/mean"] == 0.0
    prompts = {
        saved.episode.task.environment: str(saved.episode.messages[0]["content"])
        for file in made.run_folder.episode_files("grpo")
        for saved in file.read()
    }
    assert prompts == {"letters": "Talk.\n\nSay abc.", "numbers": "Count."} or set(prompts) == {
        "letters",
        "numbers",
    }


def test_tools_without_an_environment(tmp_path: Path, model_folder: Path) -> None:
    def double(n: int) -> int:
        """Double a number.

        Args:
            n: The number.
        """
        return 2 * n

    made = trainer(tmp_path, str(model_folder), environment_factory=None, tools=[double])
    assert learned(made).abs().max() > 1e-4


def test_neither_tools_nor_environment(tmp_path: Path, model_folder: Path) -> None:
    assert learned(trainer(tmp_path, str(model_folder), environment_factory=None)).abs().max() > 0


@pytest.mark.report("P197")
@pytest.mark.contract(11)
def test_an_environment_brings_the_task_where_there_is_no_data(
    tmp_path: Path, model_folder: Path
) -> None:
    made = trainer(tmp_path, str(model_folder), train_dataset=None, steps_per_generation=1)
    assert learned(made).abs().max() > 1e-4
    (file, *_) = made.run_folder.episode_files("grpo")
    assert next(file.read()).episode.messages[0]["content"] == "Say ."
    alone = trainer(tmp_path / "alone", str(model_folder), None, train_dataset=None, max_steps=1)
    alone.train()
    assert steps_of(alone)[0]["rewards/Letters/mean"] == 0.0


def test_groups_of_the_same_row_are_different_groups(tmp_path: Path, model_folder: Path) -> None:
    """One row feeds both groups of a generation; a loss that averages over rows counts eight."""
    made = trainer(tmp_path, str(model_folder), train_dataset=ROWS[:1], loss_type="grpo")
    made.run_folder.create()
    rows = made._play(0).rows(made.chat.stop_ids, drop_truncated=False)
    assert len({row.episode for row in rows}) == 8


async def later(completions: list[Any], **kwargs: Any) -> list[float]:
    return by_length(completions)


def sometimes(completion_ids: list[list[int]], log_metric: Any, **kwargs: Any) -> list[Any]:
    log_metric("seen", len(completion_ids))
    return [None if ids[0] % 2 else float(ids[0]) for ids in completion_ids]


def never(completions: list[Any], **kwargs: Any) -> list[None]:
    return [None] * len(completions)


@pytest.mark.report("P053", "P083")
def test_reward_functions_of_all_kinds_add_up(tmp_path: Path, model_folder: Path) -> None:
    functions = [by_parity, later, sometimes, never]
    made = trainer(tmp_path, str(model_folder), functions, reward_weights=[1.0, 0.5, 0.1, 1.0])
    learned(made)
    entry = made.state.log_history[0]
    assert entry["seen"] == 8
    assert entry["rewards/later/std"] >= 0
    assert "rewards/never/mean" not in entry
    assert entry["rewards/Letters/mean"] == 0.0


def constant(completions: list[Any], **kwargs: Any) -> list[float]:
    return [0.7] * len(completions)


@pytest.mark.parametrize(
    ("reward", "options"),
    [
        (constant, {}),
        (never, {}),
        (by_parity, {"mask_truncated_completions": True, "max_completion_length": 1}),
    ],
    ids=["equal rewards", "no rewards", "all truncated"],
)
@pytest.mark.contract(39)
@pytest.mark.report("P046", "P066")
def test_a_step_with_nothing_to_learn_leaves_the_weights_alone(
    tmp_path: Path, model_folder: Path, reward: Any, options: dict[str, Any]
) -> None:
    made = trainer(tmp_path, str(model_folder), reward, environment_factory=Numbers, **options)
    assert learned(made).abs().max() == 0
    assert [entry["loss"] for entry in steps_of(made)] == [0.0] * 3


def test_a_run_continues_where_it_was_saved(tmp_path: Path, model_folder: Path) -> None:
    options: dict[str, Any] = {"num_iterations": 2, "max_steps": 4, "save_steps": 2}
    whole = trainer(tmp_path / "whole", str(model_folder), **options)
    whole.train()
    first = trainer(tmp_path / "parts", str(model_folder), **options)
    first.state.max_steps = 2
    first.train()
    second = trainer(tmp_path / "parts", str(model_folder), **options)
    second.train(resume_from_checkpoint=True)
    assert torch.equal(weights(second.model), weights(whole.model))
    assert [e["loss"] for e in steps_of(second)] == [e["loss"] for e in steps_of(whole)]


def test_a_checkpoint_is_a_model_that_loads(tmp_path: Path, model_folder: Path) -> None:
    made = trainer(tmp_path, str(model_folder), max_steps=2, save_steps=2)
    made.train()
    checkpoint = made.run_folder.checkpoints_path / "grpo" / "checkpoint-2"
    loaded = AutoModelForCausalLM.from_pretrained(checkpoint)
    assert torch.equal(weights(loaded), weights(made.model))
    tokenizer = AutoTokenizer.from_pretrained(checkpoint)
    assert tokenizer.chat_template == made.processing_class.chat_template
    adapted = trainer(tmp_path / "adapter", str(model_folder), peft_config=LoraConfig())
    adapted.train()
    assert not list(adapted.run_folder.checkpoints_path.glob("grpo/*/config.json"))


def test_how_fast_tools_answer_changes_no_bit(tmp_path: Path, model_folder: Path) -> None:
    class Dawdling(Letters):
        def reset(self, goal: str = "", **kwargs: Any) -> str:
            time.sleep(random.SystemRandom().random() / 20)
            return super().reset(goal, **kwargs)

    runs = [
        trainer(tmp_path / name, str(model_folder), environment_factory=factory, max_steps=4)
        for name, factory in (("prompt", Letters), ("dawdling", Dawdling))
    ]
    for run in runs:
        run.train()
    assert torch.equal(*(weights(run.model) for run in runs))


@pytest.mark.report("P059")
def test_numbers_that_do_not_fit_are_told_before_the_model_loads(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="num_generations=3 does not divide"):
        trainer(tmp_path, "no/such-model", num_generations=3)


def test_a_model_that_mixes_packed_rows_is_refused(tmp_path: Path) -> None:
    tokenizer = tiny_tokenizer()
    model = tiny_model(tokenizer)
    plain = model.model.forward

    def leaky(*args: Any, **kwargs: Any) -> Any:
        output = plain(*args, **kwargs)
        output.last_hidden_state = output.last_hidden_state.cumsum(1)
        return output

    model.model.forward = leaky
    with pytest.raises(UsageError, match=r"packing=True: .* Set packing=False"):
        trainer(tmp_path, model, processing_class=tokenizer, packing=True)
