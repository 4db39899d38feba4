"""Every chat template that TRL ships: extended turn by turn without a wrong token, or refused."""

from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

from corral.chat import ChatFormat
from corral.chat.proof import without_thoughts
from corral.chat.tokenizer import encode, first_difference
from corral.errors import TemplateError
from corral.records import Finish, Message, ToolCall
from support.trl_templates import dressed, template_files

REFUSED = {
    "diffusion_gemma": "not prefix-extending",
    "diffusion_gemma_training": "not prefix-extending",
    "gptoss": "which Corral cannot read",
    "gptoss_training": "which Corral cannot read",
}
TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "order",
        "description": "Order things.",
        "parameters": {
            "type": "object",
            "properties": {
                "item": {"type": "string", "description": "What."},
                "count": {"type": "integer", "description": "How many."},
                "soon": {"type": "boolean", "description": "Whether it is urgent."},
                "price": {"type": "number", "description": "Of each."},
                "tags": {"type": "array", "items": {"type": "string"}, "description": "Tags."},
            },
            "required": ["item"],
        },
    },
}
QUESTION: Message = {"role": "user", "content": "Order ünïcode tea."}
MIXED = {"item": "5", "count": 3, "soon": True, "price": 1.5, "tags": ["x", "y"]}
Turn = tuple[Message, list[Message]]


def said(*calls: dict[str, Any], content: str = "", reasoning: str | None = None) -> Message:
    message: Message = {"role": "assistant", "content": content}
    if calls:
        parts = [ToolCall(name="order", arguments=given).as_message_part() for given in calls]
        message["tool_calls"] = parts
    if reasoning:
        message["reasoning_content"] = reasoning
    return message


def heard(*texts: str) -> list[Message]:
    return [{"role": "tool", "name": "order", "content": text} for text in texts]


def game(*, has_reasoning: bool, is_parallel: bool) -> list[Turn]:
    """Five turns: reasoning, parallel calls, all types, an empty result, unicode."""
    first, later = ("I need tea.", "Hm.") if has_reasoning else (None, None)
    two = ({"item": "a"}, {"item": "b", "count": 2})
    return [
        (said({"item": "tea"}, reasoning=first), heard("done")),
        (said(*two), heard("ok", "no")) if is_parallel else (said(two[1]), heard("ok")),
        (said(MIXED, reasoning=later), heard('{"a": "é 世界 🙂"}\n<b>')),
        (said({"item": "é 世界 🙂 two words"}), heard("")),
        (said(content="All done, 世界.", reasoning=later), []),
    ]


@pytest.mark.parametrize("template", template_files(), ids=lambda path: path.stem)
@pytest.mark.contract(22, 29)
def test_a_template_is_extended_exactly_or_refused(template: Path, test_data: Path) -> None:
    tokenizer, stops = dressed(
        AutoTokenizer.from_pretrained(test_data / "tokenizers" / "qwen3"), template
    )

    def chat() -> ChatFormat:
        return ChatFormat.for_tokenizer(tokenizer, extra_stop_ids=stops, tools=[TOOL])

    if template.stem in REFUSED:
        with pytest.raises(TemplateError, match=REFUSED[template.stem]):
            chat()
        return
    format_ = chat()
    for has_reasoning in {False, shows_reasoning(format_)}:
        for is_parallel in {False, allows_two_calls(format_)}:
            play(format_, game(has_reasoning=has_reasoning, is_parallel=is_parallel))


def play(chat: ChatFormat, turns: list[Turn]) -> None:
    """Append turn by turn; compare every turn, every boundary and the whole with the template."""
    tokenizer = chat.renderer.tokenizer
    messages, ids = [QUESTION], chat.prompt_ids([QUESTION], [TOOL])
    for message, results in turns:
        sampled = chat.turn_ids(message)
        assert_read(chat, sampled, message)
        ids += sampled
        messages.append(message)
        if results:
            suffix = chat.suffix_ids(results, assistant=message)
            rendered = encode(tokenizer, text(tokenizer, ids + suffix))
            expected = encode(tokenizer, text(tokenizer, ids)) + suffix
            assert first_difference(tokenizer, expected, rendered) is None
            ids += suffix
            messages += results
    # History may leave reasoning out; everything else has to be there.
    whole = without_thoughts(chat.renderer.text(messages, tools=[TOOL]))
    appended = without_thoughts(text(tokenizer, ids))
    if not whole.rstrip().endswith(chat.turn_end.text):  # what opens the next turn ends this one
        appended = appended.removesuffix(chat.turn_end.text)
    assert appended.rstrip() == whole.rstrip()


def assert_read(chat: ChatFormat, sampled: list[int], message: Message) -> None:
    turn = chat.parse(sampled, finish=Finish.STOP)
    calls = [call["function"]["arguments"] for call in message.get("tool_calls") or []]
    assert [getattr(call, "arguments", call) for call in turn.calls] == calls
    assert (turn.reasoning or None) == message.get("reasoning_content")
    assert turn.content.strip() == message["content"]


def shows_reasoning(chat: ChatFormat) -> bool:
    shown = chat.renderer.text([QUESTION, said(content="b", reasoning="Zq7")])
    return "Zq7" in shown and not chat.opening.closes_thinking


def allows_two_calls(chat: ChatFormat) -> bool:
    try:
        chat.renderer.text([QUESTION, said({"item": "a"}, {"item": "b"})])
    except TemplateError:
        return False
    return True


def text(tokenizer: Any, ids: list[int]) -> str:
    return tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False)


def test_the_package_with_the_templates_is_there() -> None:
    names = {path.stem for path in template_files()}
    assert len(names) >= 44, "Install it as make does: pip install --no-deps trl==1.16.0"
    assert REFUSED.keys() <= names
