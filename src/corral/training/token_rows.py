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

Images stand in blocks of messages or in the columns ``image`` and ``images``, which fill the empty
blocks of messages, or the placeholders of a text, in order.
"""

import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from torch import nn

from corral.chat import ChatFormat
from corral.chat.image_support import tokenizer_and_images
from corral.chat.images import Encoded, ImageReader
from corral.chat.pictures import loaded, open_picture
from corral.chat.render import Renderer
from corral.errors import TemplateError, UsageError
from corral.records import PlacedImage
from corral.training.conversations import lay_out
from corral.training.models import chat_format, whole_renderer
from corral.training.raw_rows import RowShape, read_row
from corral.training.sft_config import SFTConfig
from corral.training.sft_images import check_images, check_placeholders
from corral.training.unlisted_calls import UnlistedCalls

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
    images: tuple[PlacedImage, ...] = ()

    @property
    def labels(self) -> list[int]:
        """The ids that are trained, -100 elsewhere."""
        pairs = zip(self.ids, self.is_trained, strict=True)
        return [token if is_trained else IGNORED for token, is_trained in pairs]

    def cut(self, place: slice) -> "TokenRow":
        """A part of a row without images."""
        return TokenRow(self.ids[place], self.is_trained[place])

    def first(self, length: int) -> "TokenRow":
        """The row's first tokens: so many, or fewer where an image would be cut in two."""
        length = next((i.start for i in self.images if i.start < length < i.stop), length)
        images = tuple(image for image in self.images if image.stop <= length)
        return TokenRow(self.ids[:length], self.is_trained[:length], images)

    def trained_tokens(self) -> int:
        """How many tokens the loss looks at."""
        return sum(self.is_trained[1:])


def token_row(
    ids: Sequence[int], is_trained: Sequence[int], images: Sequence[PlacedImage] = ()
) -> TokenRow:
    """A row of any sequences."""
    return TokenRow(tuple(ids), tuple(is_trained), tuple(images))


@dataclass(slots=True)
class RowEncoder:
    """Encodes the rows of one training; keeps a chat format for each set of template options."""

    processing_class: Any
    """The tokenizer, or the processor of a model that reads images."""
    model: nn.Module
    args: SFTConfig
    formatting_func: Callable[[Mapping[str, Any]], str] | None = None
    tokenizer: Any = field(init=False)
    images: ImageReader | None = field(init=False)
    """What reads images; None for a model that reads text only."""
    unlisted_calls: UnlistedCalls = field(default_factory=UnlistedCalls)
    _formats: dict[str, ChatFormat] = field(default_factory=dict[str, ChatFormat])
    _renderers: dict[str, Renderer] = field(default_factory=dict[str, Renderer])
    _templates: list[str | None] = field(default_factory=list[str | None])
    _has_warned: bool = False

    def __post_init__(self) -> None:
        self.tokenizer, self.images = tokenizer_and_images(self.processing_class)

    def encode(self, row: Mapping[str, Any], index: int = 0) -> TokenRow:
        """The row as tokens, uncut.

        Args:
            index: Its place in the data, for errors.

        Raises:
            UsageError: The row has no known shape, or an option asks for what it has not.
        """
        with _row(index):
            shape = self._read(row)
            self.unlisted_calls.look_at({index: shape}, "train_dataset")
            with _template(self.args.chat_template_path):
                encoded = self._encode(shape)
            if self.images is not None:
                check_placeholders(encoded.ids, encoded.images, self.images)
            return encoded

    def shapes(self, rows: Sequence[Mapping[str, Any]], name: str) -> list[RowShape]:
        """What all rows say; their pictures are not opened.

        Raises:
            UsageError: As ``encode``, for what can be seen without them.
        """
        shapes: list[RowShape] = []
        for index, row in enumerate(rows):
            with _row(index):
                shapes.append(self._read(row))
        self.unlisted_calls.look_at(dict(enumerate(shapes)), name)
        return shapes

    def _read(self, row: Mapping[str, Any]) -> RowShape:
        shape = read_row(self._formatted(row), self.args.dataset_text_field)
        self._check(shape)
        return shape

    def _formatted(self, row: Mapping[str, Any]) -> Mapping[str, Any]:
        if self.formatting_func is None or "input_ids" in row:
            return row
        text = self.formatting_func(row)
        if not isinstance(text, str):
            raise UsageError(
                f"formatting_func returned a {type(text).__name__}: return the text of the row."
            )
        pictures = {name: row[name] for name in ("image", "images") if name in row}
        return {self.args.dataset_text_field: text, **pictures}

    def _check(self, shape: RowShape) -> None:
        if shape.has_images:
            check_images(self.images, self.args)
        check_shape(shape, self.args)

    def _encode(self, shape: RowShape) -> TokenRow:
        if shape.ids is not None:
            return token_row(shape.ids, shape.mask)
        if not shape.is_conversational:
            return self._text_row(shape)
        messages = loaded(shape.messages) if shape.has_images else shape.messages
        is_completion = shape.has_completion and self.args.completion_only_loss is not False
        if self.args.assistant_only_loss:
            first = shape.prompt_length if is_completion else 0
            layout = lay_out(self._chat(shape), messages, shape.tools, first=first)
            return token_row(layout.ids, layout.is_said, layout.images)
        renderer = self._renderer(shape)
        whole = renderer.encoded(messages, tools=shape.tools)
        if not is_completion:
            return self._row_after(None, whole)
        asked = messages[: shape.prompt_length]
        return self._row_after(renderer.ids(asked, tools=shape.tools, opens_turn=True), whole)

    def _text_row(self, shape: RowShape) -> TokenRow:
        eos, text = self.tokenizer.eos_token, shape.completion
        if eos and not text.endswith(eos):
            text += eos
        pictures = [open_picture(picture) for picture in shape.pictures]
        whole = self._text_ids((shape.prompt or "") + text, pictures)
        if shape.prompt is None or self.args.completion_only_loss is False:
            return self._row_after(None, whole)
        if self.images is not None:
            pictures = pictures[: shape.prompt.count(self.images.token)]
        return self._row_after(self._text_ids(shape.prompt, pictures).ids, whole)

    def _text_ids(self, text: str, pictures: Sequence[Any]) -> Encoded:
        if pictures and self.images is not None:
            return self.images.encode_text(text, pictures)
        return Encoded([int(token) for token in self.tokenizer(text=text)["input_ids"]])

    def _row_after(self, prompt: Sequence[int] | None, whole: Encoded) -> TokenRow:
        """A row in which all is trained that follows the prompt."""
        start = 0 if prompt is None else self._common(prompt, whole.ids)
        mask = [0] * start + [1] * (len(whole.ids) - start)
        return token_row(whole.ids, mask, whole.images)

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
                self.processing_class, self.model, tools, options, needs_tools=shape.uses_tools
            )
            self._templates.append(self._formats[key].template)
        return self._formats[key]

    def _renderer(self, shape: RowShape) -> Renderer:
        """How this conversation is written as a whole; nothing to prove there."""
        options = self._options(shape)
        key = _key(options, shape)
        if key not in self._renderers:
            self._renderers[key] = whole_renderer(
                self.processing_class, self.model, options, needs_tools=shape.uses_tools
            )
            self._templates.append(self._renderers[key].template)
        return self._renderers[key]

    def _options(self, shape: RowShape) -> dict[str, Any]:
        return {**self.args.chat_template_kwargs, **shape.template_options}

    @property
    def template(self) -> str | None:
        """The template to save with the model: ours where a row needed it, else None."""
        return next((template for template in self._templates if template is not None), None)


def check_shape(shape: RowShape, args: SFTConfig) -> None:
    """Check that a row has what the loss is to look at.

    Raises:
        UsageError: It has something else.
    """
    if args.assistant_only_loss and not shape.is_conversational:
        raise UsageError(
            "assistant_only_loss=True needs conversations ('messages', or 'prompt' and "
            f"'completion' as lists of messages), and this row has {shape.described}."
        )
    if args.completion_only_loss and not shape.has_completion:
        raise UsageError(
            "completion_only_loss=True needs 'prompt' and 'completion', and this row has "
            f"{shape.described}. For conversations there is assistant_only_loss."
        )


@contextmanager
def _row(index: int) -> Iterator[None]:
    """Say of which row an error is."""
    try:
        yield
    except UsageError as error:
        raise UsageError(f"Row {index}: {error}") from error


@contextmanager
def _template(path: str | None) -> Iterator[None]:
    """Say of which template an error is, where one was given."""
    try:
        yield
    except TemplateError as error:
        if path is None:
            raise
        raise TemplateError(f"chat_template_path={path!r}: {error}") from error


def _key(options: Mapping[str, Any], shape: RowShape) -> str:
    return json.dumps([options, shape.uses_tools], sort_keys=True, default=repr)
