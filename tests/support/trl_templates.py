"""The chat templates that the ``trl`` package ships, each on a tokenizer with its markers."""

import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from transformers import AutoTokenizer

_MARKERS = re.compile(
    r"<\|[^|<>\s{}']{1,40}\|>|<｜[^<>]{1,40}?｜>|<\|[a-z_\"]+>|<[a-z_]+\|>"
    r"|<(?:start|end)_of_(?:turn|utterance|image)>|<unk>|</?s>|<image>|</?think>|</?tool_call>"
)
_TURN_ENDS = {
    "cohere": "<|END_OF_TURN_TOKEN|>",
    "deepseek": "<｜end▁of▁sentence｜>",
    "diffusion_gemma": "<turn|>",
    "gemma4": "<turn|>",
    "gemma": "<end_of_turn>",
    "glm4moe": "<|endoftext|>",
    "gptoss": "<|return|>",
    "idefics3": "<end_of_utterance>",
    "llama3": "<|eot_id|>",
    "llava_next": "</s>",
    "phi3": "<|end|>",
    "smolvlm": "<end_of_utterance>",
}
_MORE_STOPS = {
    "diffusion_gemma": ["<|tool_response>"],
    "gemma4": ["<|tool_response>"],
    "glm4moe": ["<|user|>", "<|observation|>"],
    "gptoss": ["<|call|>"],
}
"""What the models' generation configs name beside the end of a turn."""


def template_files() -> list[Path]:
    """The templates; none where the package is not installed. It is not imported."""
    found = find_spec("trl")
    if found is None or found.origin is None:
        return []
    return sorted((Path(found.origin).parent / "chat_templates").glob("*.jinja"))


def dressed(folder: Path, template: Path) -> tuple[Any, list[int]]:
    """The tokenizer in ``folder`` with a template; and the ids of further stop tokens.

    Templates that write only what the tokenizer has get it as it is, the others one with all their
    markers. Either is loaded once in a process: the next call dresses it anew.
    """
    source = template.read_text(encoding="utf-8")
    end, more = _stops(template.stem)
    tokenizer = _tokenizer(folder, with_all=False)
    if {*_MARKERS.findall(source), end, *more} - tokenizer.get_vocab().keys():
        tokenizer = _tokenizer(folder, with_all=True)
    tokenizer.eos_token = end
    tokenizer.chat_template = source
    return tokenizer, [tokenizer.convert_tokens_to_ids(stop) for stop in more]


def dress(tokenizer: Any, template: Path) -> list[int]:
    """Give a tokenizer a template with the markers it writes; the ids of further stop tokens."""
    source = template.read_text(encoding="utf-8")
    end, more = _stops(template.stem)
    missing = {*_MARKERS.findall(source), end, *more} - tokenizer.get_vocab().keys()
    tokenizer.add_special_tokens(
        {"additional_special_tokens": sorted(missing), "bos_token": "<|bos|>"},
        replace_extra_special_tokens=False,
    )
    tokenizer.eos_token = end
    tokenizer.chat_template = source
    return [tokenizer.convert_tokens_to_ids(stop) for stop in more]


@cache
def _tokenizer(folder: Path, *, with_all: bool) -> Any:
    tokenizer = AutoTokenizer.from_pretrained(folder)
    if not with_all:
        return tokenizer
    known = tokenizer.get_vocab()
    markers: set[str] = set()
    for template in template_files():
        end, more = _stops(template.stem)
        markers |= {*_MARKERS.findall(template.read_text(encoding="utf-8")), end, *more}
    tokenizer.add_special_tokens(
        {
            "additional_special_tokens": sorted(markers - known.keys()),
            "bos_token": "<|bos|>",
        },
        replace_extra_special_tokens=False,
    )
    return tokenizer


def _stops(name: str) -> tuple[str, list[str]]:
    """What ends a turn in a template's family, and what else its models stop at."""
    return _of_family(_TURN_ENDS, name, "<|im_end|>"), _of_family(_MORE_STOPS, name, [])


def _of_family(values: dict[str, Any], name: str, default: Any) -> Any:
    families = sorted((family for family in values if name.startswith(family)), key=len)
    return values[families[-1]] if families else default
