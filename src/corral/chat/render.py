"""Conversations as the text a chat template makes of them."""

import json
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from corral.chat.images import Encoded, ImageReader
from corral.chat.pictures import has_image
from corral.chat.tokenizer import Tokenizer, encode
from corral.chat.written import Written, check_written, remedy_of
from corral.errors import ImageError, TemplateError
from corral.records import Message
from corral.records.images import is_image_block

_TEMPLATE_FILE = "<template>"
"""What Jinja calls text that it was given, in tracebacks."""
_OTHER_MEDIA = ("audio", "input_audio", "audio_url", "video", "video_url")


@dataclass(frozen=True, slots=True, kw_only=True)
class Renderer:
    """A chat template with everything that decides how it renders."""

    tokenizer: Tokenizer
    template: str | None
    """None: the tokenizer's own."""
    options: Mapping[str, Any]
    """Extra variables of the template, such as ``enable_thinking``."""
    arguments_as_text: bool = False
    """The template wants the arguments of a call as a JSON string, not as a mapping."""
    call_ids: bool = False
    """The template wants an id on each call and on the result that answers it."""
    content_as_blocks: bool = False
    """The template wants content as a list of blocks, also where it is text."""
    images: ImageReader | None = None
    """What reads images for the model; None for a model that reads text only."""
    _written: Written = field(default_factory=Written, compare=False, repr=False)

    def text(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[dict[str, Any]] | None = None,
        opens_turn: bool = False,
    ) -> str:
        """The conversation as text; ``opens_turn`` leads up to where the model speaks.

        Raises:
            ImageError: The model reads no images and there are some, or there is sound or film.
            TemplateError: The template fails on the messages.
        """
        if self.images is None and any(map(has_image, messages)):
            raise _text_only(self.tokenizer)
        _refuse_other_media(messages)
        plain = [plain_message(message, self.arguments_as_text) for message in messages]
        if self.call_ids:
            _number_calls(plain)
        if self.content_as_blocks:
            _wrap_contents(plain)
        try:
            return str(
                self.tokenizer.apply_chat_template(
                    plain,
                    # Templates ask whether tools are None; an empty list would announce none.
                    tools=list(tools) if tools else None,
                    chat_template=self.template,
                    add_generation_prompt=opens_turn,
                    tokenize=False,
                    **self.options,
                )
            )
        except Exception as error:
            # A template is a program we did not write: it may raise anything.
            roles = [str(message["role"]) for message in messages]
            line = _line_of(error)
            where = "" if line is None else f" in line {line}"
            raise TemplateError(
                f"The chat template failed{where} on messages with roles [{', '.join(roles)}]: "
                f"{type(error).__name__}: {error}{remedy_of(roles)}"
            ) from error

    def ids(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[dict[str, Any]] | None = None,
        opens_turn: bool = False,
    ) -> list[int]:
        """The conversation as ids."""
        return self.encoded(messages, tools=tools, opens_turn=opens_turn).ids

    def encoded(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[dict[str, Any]] | None = None,
        opens_turn: bool = False,
    ) -> Encoded:
        """The conversation as ids, with its images.

        Raises:
            TemplateError: As ``text``, or the template leaves a message out.
        """
        self.check_written(messages, tools=tools)
        return self.encode(self.text(messages, tools=tools, opens_turn=opens_turn), messages)

    def check_written(
        self, messages: Sequence[Message], *, tools: Sequence[dict[str, Any]] | None = None
    ) -> None:
        """Check that the template leaves no message out; see :mod:`corral.chat.written`."""
        check_written(messages, lambda marked: self.text(marked, tools=tools), self._written)

    def encode(self, text: str, messages: Sequence[Message]) -> Encoded:
        """Text in which ``messages`` are rendered as ids, with their images."""
        if self.images is not None:
            return self.images.encode(text, messages)
        return Encoded(encode(self.tokenizer, text))


def _line_of(error: Exception) -> int | None:
    """Which line of a template raised; None where that is unknown."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == _TEMPLATE_FILE]
    return getattr(error, "lineno", None) or next(reversed(lines), None)


def _refuse_other_media(messages: Sequence[Message]) -> None:
    """Templates write a placeholder for them, or nothing; the model would be shown neither."""
    kinds = [_kind(block) for message in messages for block in _blocks(message.get("content"))]
    medium = next((kind for kind in kinds if kind in _OTHER_MEDIA), None)
    if medium is not None:
        raise ImageError(
            f"A content block of type {medium!r} cannot be shown to a model: give text or images."
        )


def _blocks(content: object) -> list[Any]:
    return cast("list[Any]", content) if isinstance(content, list) else []


def _kind(block: object) -> object:
    return cast("Mapping[str, Any]", block).get("type") if isinstance(block, Mapping) else None


def _text_only(tokenizer: Tokenizer) -> ImageError:
    name = getattr(tokenizer, "name_or_path", "") or type(tokenizer).__name__
    return ImageError(
        f"The model reads text only ({name} has no image processor), so it cannot be shown an "
        "image. Train a vision-language model, with its AutoProcessor as processing_class, or "
        "return text."
    )


def plain_message(message: Message, arguments_as_text: bool) -> dict[str, Any]:
    """The message in the one shape templates agree on; the original is left alone.

    Content is never None or missing, reasoning and calls are absent rather than empty, arguments
    are a mapping unless the template wants text.
    """
    content = _without_pictures(plain_content(message.get("content")))
    plain: dict[str, Any] = {**message, "content": content}
    if plain.get("reasoning_content") is None:
        plain.pop("reasoning_content", None)
    else:  # the name that gpt-oss and LFM2.5 know it by
        plain.setdefault("thinking", plain["reasoning_content"])
    calls = cast("list[dict[str, Any]]", plain.pop("tool_calls", None) or [])
    if calls:
        plain["tool_calls"] = [_plain_call(call, arguments_as_text) for call in calls]
    return plain


def plain_content(content: object) -> object:
    """Text where the content is text, also in blocks; blocks of other kinds stay blocks."""
    if content is None:
        return ""
    if not isinstance(content, list):
        return content
    blocks = cast("list[Any]", content)
    texts = [_block_text(block) for block in blocks]
    return "".join(cast("list[str]", texts)) if None not in texts else blocks


def _without_pictures(content: object) -> object:
    """Content as a template needs it: it asks where an image stands, and never looks at it.

    Tables put None under ``image`` in blocks of text, which some templates take for an image.
    """
    if not isinstance(content, list):
        return content
    return [_plain_block(block) for block in cast("list[Any]", content)]


def _plain_block(block: Any) -> Any:
    if not isinstance(block, Mapping):
        return block
    fields = cast("Mapping[str, Any]", block)
    if is_image_block(fields):
        return {"type": "image"}
    return {key: value for key, value in fields.items() if value is not None}


def _wrap_contents(messages: Sequence[dict[str, Any]]) -> None:
    for message in messages:
        if isinstance(message["content"], str):
            message["content"] = [{"type": "text", "text": message["content"]}]


def _number_calls(messages: Sequence[dict[str, Any]]) -> None:
    """Give calls without an id one, and each result the id of the call it answers.

    They are numbered from 0 in each turn, so that a turn is rendered alike wherever it stands.
    """
    unanswered: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            message.setdefault("tool_call_id", unanswered.pop(0) if unanswered else "call00000")
            continue
        unanswered = []
        calls = cast("list[dict[str, Any]]", message.get("tool_calls", []))
        for number, call in enumerate(calls):
            # Nine letters and digits is what the strictest templates ask of an id.
            unanswered.append(call.setdefault("id", f"call{number:05d}"))


def _block_text(block: object) -> str | None:
    if not isinstance(block, Mapping):
        return None
    fields = cast("Mapping[str, Any]", block)
    text = fields.get("text")
    return text if fields.get("type") == "text" and isinstance(text, str) else None


def _plain_call(call: Mapping[str, Any], arguments_as_text: bool) -> dict[str, Any]:
    function: dict[str, Any] = dict(call.get("function") or call)
    arguments: Any = function.get("arguments")
    if isinstance(arguments, str):
        arguments = _mapping_or_text(arguments)
    if arguments is None:
        arguments = dict[str, Any]()
    if arguments_as_text and not isinstance(arguments, str):
        arguments = json.dumps(arguments, ensure_ascii=False)
    function["arguments"] = arguments
    kept = {key: value for key, value in call.items() if key == "id"}
    return {**kept, "type": "function", "function": function}


def _mapping_or_text(text: str) -> Any:
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return cast("Any", value) if isinstance(value, dict) else text
