"""Rows of data as tokens with labels: what supervised fine-tuning learns from.

===================================  =====================================  ======================
columns                              the tokens are                         trained by default
===================================  =====================================  ======================
``messages`` (+ ``tools``)           the chat template's rendering          all of them
``prompt`` and ``completion``,       the rendering of both together         what follows the prompt
lists of messages (+ ``tools``)
``prompt`` and ``completion``, text  both together, and the eos token       what follows the prompt
``text``                             the text, and the eos token            all of them
``input_ids`` (+ ``labels``)         as given                               labels other than -100
===================================  =====================================  ======================

With ``assistant_only_loss`` a conversation is laid out as a rollout lays it out, and trained is
what an assistant says, from behind the generation prompt through the stop token.
"""

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import nn

from corral.chat import ChatFormat
from corral.chat.render import Renderer
from corral.errors import UsageError
from corral.training.conversations import lay_out
from corral.training.models import chat_format, whole_renderer
from corral.training.raw_rows import RowShape, read_row
from corral.training.sft_config import SFTConfig

logger = logging.getLogger(__name__)

IGNORED = -100
"""The label of a token that is not trained, as ``transformers`` has it."""


@dataclass(frozen=True, slots=True)
class TokenRow:
    """One row as tokens."""

    ids: tuple[int, ...]
    is_trained: tuple[int, ...]
    """1 where the loss looks. Nothing predicts a row's first token, so that one is left out when
    the row is trained; where rows are joined, its predecessor does."""

    @property
    def labels(self) -> list[int]:
        """The ids that are trained, -100 elsewhere."""
        pairs = zip(self.ids, self.is_trained, strict=True)
        return [token if is_trained else IGNORED for token, is_trained in pairs]

    def cut(self, place: slice) -> "TokenRow":
        """A part of the row."""
        return TokenRow(self.ids[place], self.is_trained[place])

    def trained_tokens(self) -> int:
        """How many tokens the loss looks at."""
        return sum(self.is_trained[1:])


def token_row(ids: Sequence[int], is_trained: Sequence[int]) -> TokenRow:
    """A row of any sequences."""
    return TokenRow(tuple(ids), tuple(is_trained))


@dataclass(slots=True)
class RowEncoder:
    """Encodes the rows of one training; keeps a chat format for each set of template options."""

    tokenizer: Any
    model: nn.Module
    args: SFTConfig
    formatting_func: Callable[[Mapping[str, Any]], str] | None = None
    _formats: dict[str, ChatFormat] = field(default_factory=dict[str, ChatFormat])
    _renderers: dict[str, Renderer] = field(default_factory=dict[str, Renderer])
    _templates: list[str | None] = field(default_factory=list[str | None])
    _has_warned: bool = False

    def encode(self, row: Mapping[str, Any], index: int = 0) -> TokenRow:
        """The row as tokens, uncut.

        Args:
            index: Its place in the data, for errors.

        Raises:
            UsageError: The row has no known shape, or an option asks for what it has not.
        """
        try:
            shape = read_row(self._formatted(row), self.args.dataset_text_field)
            self._check(shape)
            return self._encode(shape)
        except UsageError as error:
            raise UsageError(f"Row {index}: {error}") from error

    def _formatted(self, row: Mapping[str, Any]) -> Mapping[str, Any]:
        if self.formatting_func is None or "input_ids" in row:
            return row
        text = self.formatting_func(row)
        if not isinstance(text, str):
            raise UsageError(
                f"formatting_func returned a {type(text).__name__}: return the text of the row."
            )
        return {self.args.dataset_text_field: text}

    def _check(self, shape: RowShape) -> None:
        if self.args.assistant_only_loss and not shape.is_conversational:
            raise UsageError(
                "assistant_only_loss=True needs conversations ('messages', or 'prompt' and "
                f"'completion' as lists of messages), and this row has {shape.described}."
            )
        if self.args.completion_only_loss and not shape.has_completion:
            raise UsageError(
                "completion_only_loss=True needs 'prompt' and 'completion', and this row has "
                f"{shape.described}. For conversations there is assistant_only_loss."
            )

    def _encode(self, shape: RowShape) -> TokenRow:
        if shape.ids is not None:
            return token_row(shape.ids, shape.mask)
        if not shape.is_conversational:
            return self._text_row(shape.prompt, shape.completion)
        if self.args.assistant_only_loss:
            return self._played_row(self._chat(shape), shape)
        renderer = self._renderer(shape)
        ids, start = renderer.ids(shape.messages, tools=shape.tools), 0
        if shape.has_completion and self.args.completion_only_loss is not False:
            asked = shape.messages[: shape.prompt_length]
            start = self._common(renderer.ids(asked, tools=shape.tools, opens_turn=True), ids)
        return token_row(ids, [0] * start + [1] * (len(ids) - start))

    def _text_row(self, prompt: str | None, text: str) -> TokenRow:
        eos = self.tokenizer.eos_token
        if eos and not text.endswith(eos):
            text += eos
        if prompt is None:
            ids = self._text_ids(text)
            return token_row(ids, [1] * len(ids))
        ids, start = self._text_ids(prompt + text), 0
        if self.args.completion_only_loss is not False:
            start = self._common(self._text_ids(prompt), ids)
        return token_row(ids, [0] * start + [1] * (len(ids) - start))

    def _text_ids(self, text: str) -> list[int]:
        return [int(token) for token in self.tokenizer(text=text)["input_ids"]]

    def _played_row(self, chat: ChatFormat, shape: RowShape) -> TokenRow:
        is_completion = shape.has_completion and self.args.completion_only_loss is not False
        layout = lay_out(
            chat, shape.messages, shape.tools, first=shape.prompt_length if is_completion else 0
        )
        return token_row(layout.ids, layout.is_said)

    def _common(self, prompt: Sequence[int], ids: Sequence[int]) -> int:
        """Where the completion starts: where its ids part from those of the prompt alone."""
        pairs = enumerate(zip(prompt, ids, strict=False))
        start = next((place for place, (one, other) in pairs if one != other), len(prompt))
        if start < len(prompt) and not self._has_warned:
            self._has_warned = True
            lost = self.tokenizer.decode(list(prompt[start:]))
            logger.warning(
                "The prompt alone and the prompt with its completion are different tokens from %r "
                "on, so that is where the completion starts: the model learns in a context that it "
                "will not see when it answers. With assistant_only_loss=True conversations are "
                "laid out as they are played; a text prompt should end where a token ends.",
                lost,
            )
        return min(start, len(ids))

    def _chat(self, shape: RowShape) -> ChatFormat:
        """How this conversation is played: proved for its tools."""
        options = self._options(shape)
        key = _key(options, shape)
        if key not in self._formats:
            tools = list(shape.tools or [])
            self._formats[key] = chat_format(
                self.tokenizer, self.model, tools, options, needs_tools=shape.uses_tools
            )
            self._templates.append(self._formats[key].template)
        return self._formats[key]

    def _renderer(self, shape: RowShape) -> Renderer:
        """How this conversation is written as a whole; nothing to prove there."""
        options = self._options(shape)
        key = _key(options, shape)
        if key not in self._renderers:
            self._renderers[key] = whole_renderer(
                self.tokenizer, self.model, options, needs_tools=shape.uses_tools
            )
            self._templates.append(self._renderers[key].template)
        return self._renderers[key]

    def _options(self, shape: RowShape) -> dict[str, Any]:
        return {**self.args.chat_template_kwargs, **shape.template_options}

    @property
    def template(self) -> str | None:
        """The template to save with the model: ours where a row needed it, else None."""
        return next((template for template in self._templates if template is not None), None)


def _key(options: Mapping[str, Any], shape: RowShape) -> str:
    return json.dumps([options, shape.uses_tools], sort_keys=True, default=repr)
