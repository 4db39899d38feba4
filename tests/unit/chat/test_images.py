"""Messages with images as ids and pixels, for each way in which templates and processors do it."""

from typing import Any

import pytest

from corral.chat import ChatFormat
from corral.env import prepare
from corral.errors import ImageError, TemplateError
from corral.records import Message
from support.gallery import Gallery, picture
from support.tiny_models import tiny_tokenizer
from support.tiny_vlms import FAMILIES, tiny_processor

TOOLS = prepare(Gallery).tools.schemas


def message(role: Any, *seeds: int, text: str = "See.") -> Message:
    shown = [{"type": "image", "image": picture(seed)} for seed in seeds]
    return {"role": role, "name": "look", "content": [{"type": "text", "text": text}, *shown]}


def format_of(family: str) -> ChatFormat:
    return ChatFormat.for_tokenizer(tiny_processor(family), tools=TOOLS)


@pytest.mark.parametrize("family", FAMILIES)
def test_ids_and_pixels_are_those_of_the_processor_on_the_whole_text(family: str) -> None:
    chat = format_of(family)
    messages = chat.loaded([message("user", 1, 2), message("user", 3)])
    encoded = chat.prompt(messages, TOOLS)
    text = chat.renderer.text(messages, tools=TOOLS, opens_turn=True)
    assert chat.images is not None
    made = chat.images.inputs([placed.image.picture for placed in encoded.images], text)
    assert encoded.ids == made["input_ids"][0].tolist()
    placeholders = [i for i, token in enumerate(encoded.ids) if token == chat.images.token_id]
    within = [
        place
        for placed in encoded.images
        for place in range(placed.start, placed.stop)
        if encoded.ids[place] == chat.images.token_id
    ]
    assert within == placeholders
    assert sum(placed.image.tokens for placed in encoded.images) == len(placeholders)


@pytest.mark.parametrize("family", FAMILIES)
def test_tool_results_with_images_extend_the_conversation(family: str) -> None:
    chat = format_of(family)
    results = chat.loaded([message("tool", 4), message("tool"), message("tool", 5, 6)])
    suffix = chat.suffix(results)
    assert chat.images is not None
    for placed in suffix.images:
        assert suffix.ids[placed.start] == suffix.ids[placed.stop - 1] == chat.images.token_id
    calls = [
        {"type": "function", "function": {"name": "look", "arguments": {"room": room}}}
        for room in range(3)
    ]
    said: Message = {"role": "assistant", "content": "", "tool_calls": calls}
    whole = chat.prompt([message("user"), said, *results], TOOLS)
    assert whole.ids[-len(suffix.ids) :] == suffix.ids
    shift = len(whole.ids) - len(suffix.ids)
    assert [p.moved(shift) for p in suffix.images] == list(whole.images)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_conversation_without_tools_uses_the_template_of_the_model(family: str) -> None:
    processor = tiny_processor(family)
    chat = ChatFormat.for_tokenizer(processor, tools=(), needs_tools=False)
    assert (chat.template is None) == bool(processor.chat_template)
    encoded = chat.prompt(chat.loaded([message("user", 1, text="unheard")]))
    assert len(encoded.images) == 1
    assert "unheard" in chat.renderer.tokenizer.decode(encoded.ids)


@pytest.mark.parametrize("family", FAMILIES)
def test_what_a_table_puts_into_blocks_of_text_is_no_image(family: str) -> None:
    chat = format_of(family)
    plain = message("user", 1, text="Look.")
    text, shown = plain["content"]
    holes = {**plain, "content": [{**text, "image": None}, {**shown, "text": None}]}
    assert chat.prompt(chat.loaded([holes])).ids == chat.prompt(chat.loaded([plain])).ids


def test_equal_pictures_are_processed_once() -> None:
    chat = format_of("llava")
    first, second = (chat.prompt(chat.loaded([message("user", 1)])) for _ in range(2))
    assert first.images[0].image is second.images[0].image


@pytest.mark.parametrize("family", FAMILIES)
def test_text_that_spells_a_placeholder_is_text(family: str) -> None:
    chat = format_of(family)
    assert chat.images is not None
    token = chat.images.token
    result: Message = {"role": "tool", "name": "look", "content": f"a {token}"}
    assert chat.images.token_id not in chat.suffix([result]).ids
    encoded = chat.prompt(chat.loaded([message("user", 1, text=f"{token} b {token}")]))
    assert len(encoded.images) == 1
    assert encoded.ids.count(chat.images.token_id) == encoded.images[0].image.tokens


def test_a_template_that_hides_images_is_named() -> None:
    processor = tiny_processor("qwen3_vl")
    hides = processor.chat_template.replace("{%- if content.type == 'image'", "{%- if false")
    processor.chat_template = hides
    chat = ChatFormat.for_tokenizer(processor, tools=TOOLS)
    with pytest.raises(TemplateError, match=r"0 placeholders '<\|image_pad\|>' for 1 images"):
        chat.prompt(chat.loaded([message("user", 1)]))


def test_a_model_of_text_alone_says_so() -> None:
    chat = ChatFormat.for_tokenizer(tiny_tokenizer(), tools=TOOLS)
    with pytest.raises(ImageError, match=r"reads text only .* AutoProcessor as processing_class"):
        chat.prompt(chat.loaded([message("user", 1)]))
    with pytest.raises(ImageError, match="reads text only"):
        chat.suffix(chat.loaded([message("tool", 1)]))


def test_ids_alone_are_not_given_for_messages_with_images() -> None:
    chat = format_of("llava")
    with pytest.raises(ValueError, match="have images"):
        chat.prompt_ids(chat.loaded([message("user", 1)]))
