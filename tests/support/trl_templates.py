"""The chat templates that the ``trl`` package ships, each on a tokenizer with its markers."""

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

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


def dressed(tokenizer: Any, template: Path) -> tuple[Any, list[int]]:
    """The tokenizer with a template and its special tokens; and the ids of further stop tokens."""
    source = template.read_text(encoding="utf-8")
    end = _of_family(_TURN_ENDS, template.stem, "<|im_end|>")
    more: list[str] = _of_family(_MORE_STOPS, template.stem, [])
    known = tokenizer.get_vocab()
    missing = sorted({*_MARKERS.findall(source), end, *more} - known.keys())
    tokenizer.add_special_tokens(
        {"additional_special_tokens": missing, "bos_token": "<|bos|>"},
        replace_extra_special_tokens=False,
    )
    tokenizer.eos_token = end
    tokenizer.chat_template = source
    return tokenizer, [tokenizer.convert_tokens_to_ids(stop) for stop in more]


def _of_family(values: dict[str, Any], name: str, default: Any) -> Any:
    families = sorted((family for family in values if name.startswith(family)), key=len)
    return values[families[-1]] if families else default
