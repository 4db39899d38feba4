"""Runs user scripts under TRL and under Corral: ``python -m support.compat_run SCRIPTS OUT``.

Started by ``tests/compat/test_scripts.py``. A script is executed as it stands, but that ``from trl
import`` becomes ``from corral import`` for Corral. In both libraries, the model's generation is
replaced by the turns of a policy, at the place where token ids go in and token ids come out; and
what a script played is written down: prompts, messages, ids, masks, rewards and advantages.
"""

import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

os.environ["TRL_EXPERIMENTAL_SILENCE"] = "1"

import torch
import trl
from trl.chat_template_utils import qwen3_chat_template

import corral
from corral.engines.scripted import ScriptedEngine
from support.tiny_models import tiny_model
from support.toy_tokenizers import TAGS, byte_level_tokenizer

CONTEXT = 4096

Row = dict[str, Any]
"""One episode, as :func:`row` makes it."""


def save_model(folder: Path) -> None:
    """A tiny model with the chat template of Qwen3, which TRL knows."""
    tokenizer = byte_level_tokenizer(
        chat_template=qwen3_chat_template, plain_tags=TAGS, pad="<|endoftext|>"
    )
    tokenizer.save_pretrained(folder)
    tiny_model(tokenizer, max_position_embeddings=CONTEXT).save_pretrained(folder)


class Turns:
    """Says the turns of a policy, conversation by conversation."""

    def __init__(self, policy: Any, tokenizer: Any) -> None:
        self._policy = policy
        self._tokenizer = tokenizer
        self._rest: dict[Any, list[str]] = {}

    def next(self, conversation: Any, member: int, ids: Sequence[int]) -> list[int]:
        """The ids of a conversation's next turn; at its first, ``ids`` are the prompt's."""
        if conversation not in self._rest:
            self._rest[conversation] = self._policy(self._tokenizer.decode(list(ids)), member)
        text = self._rest[conversation].pop(0)
        return [
            *self._tokenizer.encode(text, add_special_tokens=False),
            self._tokenizer.eos_token_id,
        ]


class ScriptedTRL(trl.GRPOTrainer):
    """TRL's trainer with a scripted model; keeps what it played."""

    policy: Any
    rows: list[Row]

    def _generate(self, prompts: list[Any]) -> Any:
        self._turns = Turns(type(self).policy, self.processing_class)
        self._conversations: list[list[int]] = []
        return super()._generate(prompts)

    def _generate_single_turn(self, prompt_ids: Any, *args: Any, **kwargs: Any) -> Any:
        is_first = not self._conversations
        if is_first:
            self._conversations = [list(ids) for ids in prompt_ids]
        places, left = [], list(range(len(self._conversations)))
        for ids in prompt_ids:
            place = next(
                p for p in left if ids[: len(self._conversations[p])] == self._conversations[p]
            )
            left.remove(place)
            places.append(place)
        turns = [
            self._turns.next(place, place % self.num_generations, ids)
            for place, ids in zip(places, prompt_ids, strict=True)
        ]
        for place, ids, turn in zip(places, prompt_ids, turns, strict=True):
            self._conversations[place] = [*ids, *turn]
        return turns, None

    def _calculate_rewards(self, inputs: Any, prompts: Any, completions: Any, ids: Any) -> Any:
        rewards = super()._calculate_rewards(inputs, prompts, completions, ids)
        self._scored = prompts, completions, rewards
        return rewards

    def _generate_and_score_completions(self, inputs: Any) -> Any:
        out = super()._generate_and_score_completions(inputs)
        prompts, completions, rewards = self._scored
        ones = torch.ones_like(out["completion_ids"])
        mask = out["completion_mask"] * out.get("tool_mask", ones)
        for place, prompt in enumerate(prompts):
            is_kept = out["completion_mask"][place].bool()
            values = [None if value != value else value for value in rewards[place].tolist()]
            made = row(
                prompt=prompt,
                completion=completions[place],
                prompt_ids=out["prompt_ids"][place][out["prompt_mask"][place].bool()].tolist(),
                completion_ids=out["completion_ids"][place][is_kept].tolist(),
                mask=mask[place][is_kept].tolist(),
                rewards=dict(zip(self.reward_func_names, values, strict=True)),
                advantage=float(out["advantages"][place]),
            )
            type(self).rows.append(made)
        return out


class ScriptedCorral(corral.GRPOTrainer):
    """Corral's trainer with a scripted model; keeps what it played."""

    policy: Any
    rows: list[Row]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, engine=ScriptedEngine(self._turn, context=CONTEXT), **kwargs)
        self._turns = Turns(type(self).policy, self.processing_class)

    def _turn(self, key: str, ids: Sequence[int]) -> list[int]:
        member = int(key.partition("#")[0].rpartition("/")[2])
        return self._turns.next(key, member, ids)

    def _play(self, number: int) -> Any:
        generation = super()._play(number)
        episodes, advantages = generation.episodes(), generation.advantages.values
        for episode, advantage in zip(episodes, advantages, strict=True):
            (tokens,) = episode.transcript.rows()
            start = tokens.prompt_length
            made = row(
                prompt=list(episode.messages[: episode.completion_start]),
                completion=list(episode.messages[episode.completion_start :]),
                prompt_ids=list(tokens.ids[:start]),
                completion_ids=list(tokens.ids[start:]),
                mask=list(tokens.loss_mask[start:]),
                rewards=dict(episode.rewards),
                advantage=advantage,
            )
            type(self).rows.append(made)
        return generation


def row(*, completion: list[Any], rewards: dict[str, float | None], **fields: Any) -> Row:
    return {"completion": completion, "rewards": dict(sorted(rewards.items())), **fields}


def run(script: Path, policy: Any, library: str) -> list[Row]:
    """Execute a script; what it played."""
    trainer: Any = {"trl": ScriptedTRL, "corral": ScriptedCorral}[library]
    trainer.policy, trainer.rows = staticmethod(policy), []
    module = {"trl": trl, "corral": corral}[library]
    source = script.read_text("utf-8").replace("from trl import", f"from {library} import")
    before = module.GRPOTrainer
    module.GRPOTrainer = trainer
    try:
        exec(compile(source, script, "exec"), {"__name__": "__main__"})
    finally:
        module.GRPOTrainer = before
    return trainer.rows


def main(scripts: Path, out: Path) -> None:
    sys.path.insert(0, str(scripts.parent))
    from policies import POLICIES

    found: dict[str, dict[str, list[Row]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        os.environ["MODEL"] = f"{folder}/model"
        save_model(Path(folder) / "model")
        for script in sorted(scripts.glob("*.py")):
            found[script.stem] = {}
            for library in ("corral", "trl"):
                os.environ["OUTPUT_DIR"] = f"{folder}/{library}/{script.stem}"
                policy = POLICIES.get(script.stem)
                found[script.stem][library] = run(script, policy, library)
    out.write_text(json.dumps(found), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
