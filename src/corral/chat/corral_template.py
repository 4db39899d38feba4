"""Our own chat template, for tokenizers whose template has no place for tools."""

import json
from importlib.resources import files

from corral.chat.tokenizer import Tokenizer, decode, single_token
from corral.errors import TemplateError

TURN_OPEN, TURN_CLOSE = "<|im_start|>", "<|im_end|>"


def corral_template(tokenizer: Tokenizer, *, image_mark: str | None = None) -> str:
    """The template with this tokenizer's turn markers filled in; the tokenizer stays as it is.

    ChatML markers where the tokenizer has both as single tokens, otherwise plain role lines and
    the end-of-sequence token.

    Args:
        image_mark: What stands for an image; None for a model that reads text only.
    """
    marks = {} if image_mark is None else {"image_mark": image_mark}
    if all(single_token(tokenizer, marker) is not None for marker in (TURN_OPEN, TURN_CLOSE)):
        # ChatML models have seen a newline between turns all their life.
        return _filled(turn_open=TURN_OPEN, turn_close=TURN_CLOSE + "\n", **marks)
    if tokenizer.eos_token_id is None:
        raise TemplateError(
            f"The tokenizer has neither {TURN_OPEN} and {TURN_CLOSE} nor an end-of-sequence token, "
            "so nothing can end a turn: set tokenizer.eos_token."
        )
    return _filled(turn_open="", turn_close=decode(tokenizer, [tokenizer.eos_token_id]), **marks)


def _filled(**markers: str) -> str:
    body = files("corral.chat").joinpath("template.jinja").read_text(encoding="utf-8")
    head = [f"{{%- set {name} = {json.dumps(text)} -%}}" for name, text in markers.items()]
    return "\n".join([*head, body])
