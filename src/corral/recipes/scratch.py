"""A small language model and its tokenizer, both from a seed: the model of a laptop-sized run.

The tokenizer spells: every byte is a token. What every conversation of the world repeats (markers
of the chat template, the frame of a tool call, words of the task) is a token of its own as well, so
that turns are short. Words to be guessed are never among those: they are spelled.
"""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from string import ascii_uppercase
from tempfile import mkdtemp
from typing import Any

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from corral.env import prepare
from corral.recipes.recipe import ScratchModel
from corral.rollout.seeds import derive
from corral.worlds import World
from corral.worlds.play import play_episodes

PAD, TURN_OPEN, TURN_END = "<|pad|>", "<|im_start|>", "<|im_end|>"
FRAMES = (
    "<|im_start|>system\nTools:\n",
    'Call: <tool_call>{"name": ..., "arguments": {...}}</tool_call><|im_end|>\n<|im_start|>user\n',
    "<|im_end|>\n<|im_start|>assistant\n",
    "\n<|im_start|>tool\n<tool_response>",
    "</tool_response><|im_end|>\n<|im_start|>assistant\n",
    "</tool_response>",
    "<think>",
    "</think>",
    "</tool_call>",
)
"""What Corral's chat template puts around messages. A model's own turns end in the plain marker."""

SAMPLE_GAMES = 100
"""Random games whose words are counted."""

FREQUENT_SHARE = 0.2
"""A word gets its own token if this share of random games shows it; no secret comes near that."""

LINE_SHARE = 0.05
"""The same of a line without spaces, as boards have them: there are more of these, each rarer."""

_LINE = re.compile(r"^\S{3,}\n?", re.MULTILINE)
_WORD = re.compile(r" [A-Za-z-]{2,}[.,:]?|\b[A-Z][a-z]+| [1-4.|](?=[ \n])")
"""Words, and the cells of small boards. (" 7" would be taken for a marker: it is in the name of the
dummy tool that shows what the template writes.)"""


def build_scratch_model(section: ScratchModel, world: World, seed: int, target: Path) -> None:
    """Write a randomly initialised model and its tokenizer for ``world`` to ``target``."""
    tokenizer: Any = scratch_tokenizer(world)
    torch.manual_seed(derive(seed, "weights"))
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=section.hidden_size,
            intermediate_size=section.intermediate_size,
            num_hidden_layers=section.layers,
            num_attention_heads=section.heads,
            num_key_value_heads=section.heads,
            max_position_embeddings=section.max_context,
            tie_word_embeddings=True,
            initializer_range=section.initializer_range,
            bos_token_id=None,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
        )
    )
    model.save_pretrained(target)
    tokenizer.save_pretrained(target)


def scratch_model(world: World, seed: int = 0) -> str:
    """A folder with a very small random model that can read ``world``, to try a script on a CPU.

    It has learned nothing, tool calls included: the recipes warm such models up first.
    """
    sizes = ScratchModel(kind="scratch", hidden_size=64, layers=2, heads=4, intermediate_size=128)
    target = Path(mkdtemp(prefix="corral-model-"))
    build_scratch_model(sizes, world, seed, target)
    return str(target)


def scratch_tokenizer(world: World) -> PreTrainedTokenizerFast:
    """A byte-level tokenizer with the world's recurring pieces as tokens of their own."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    raw = Tokenizer(models.BPE(vocab={byte: i for i, byte in enumerate(alphabet)}, merges=[]))
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    raw.decoder = decoders.ByteLevel()
    special = [PAD, TURN_OPEN, TURN_END]
    raw.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in special])
    pieces = list(dict.fromkeys(_pieces(world)))
    raw.add_tokens([AddedToken(text, special=False, normalized=False) for text in pieces])
    return PreTrainedTokenizerFast(
        tokenizer_object=raw, eos_token=TURN_END, pad_token=PAD, clean_up_tokenization_spaces=False
    )


def _pieces(world: World) -> Iterator[str]:
    yield from FRAMES
    for schema in prepare(world.factory).tools.schemas:
        yield from _call_frames(schema["function"])
    yield from _frequent_pieces(world)
    # Letters in a row, as worlds print boards and marks.
    yield from (f" {letter}" for letter in ascii_uppercase)


def _call_frames(function: dict[str, Any]) -> Iterator[str]:
    """How a tool is listed, and what stands around the arguments of a call."""
    properties = function["parameters"]["properties"]
    kinds = {
        name: "|".join(map(str, schema.get("enum", ()))) or schema.get("type")
        for name, schema in properties.items()
    }
    listed = ", ".join(f"{name}: {kind}" for name, kind in kinds.items())
    yield f"{function['name']}({listed})"
    opening = f'<tool_call>{{"name": "{function["name"]}", "arguments": {{'
    yield opening
    for name, schema in properties.items():
        quote = '"' if schema.get("type") == "string" else ""
        yield f'"{name}": {quote}'
        if len(properties) > 1:  # else nothing stands before it
            yield f', "{name}": {quote}'
        yield f'{opening}"{name}": {quote}'
        yield from (f'{opening}"{name}": {quote}{choice}' for choice in schema.get("enum", ()))
    yield '"}}</tool_call>'
    yield "}}"  # without the tag, which would be letters within a token and no marker


def _frequent_pieces(world: World) -> Iterator[str]:
    words: Counter[str] = Counter()
    lines: Counter[str] = Counter()
    for game in play_episodes(world, world.policy("random"), episodes=SAMPLE_GAMES, seed=0):
        texts = [game.row.get("prompt", ""), game.observation or ""]
        texts += [str(tool["function"]["description"]) for tool in game.tools]
        texts += [str(turn.content) for turn in game.turns]
        words.update({word for text in texts for word in _WORD.findall(str(text))})
        lines.update({line for text in texts for line in _LINE.findall(str(text))})
    yield from (w for w, n in sorted(words.items()) if n >= FREQUENT_SHARE * SAMPLE_GAMES)
    yield from (line for line, n in sorted(lines.items()) if n >= LINE_SHARE * SAMPLE_GAMES)
