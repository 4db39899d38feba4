"""Every chat template that TRL ships: extended turn by turn without a wrong token, or refused."""

from pathlib import Path

import pytest

from corral.chat import ChatFormat
from corral.errors import TemplateError
from corral.records import Finish
from support.template_episodes import TOOL, examine, rows_of_page, said
from support.trl_templates import dressed, template_files

REFUSED = {"diffusion_gemma", "diffusion_gemma_training"}


@pytest.mark.parametrize("template", template_files(), ids=lambda path: path.stem)
def test_a_template_is_extended_exactly_or_refused(template: Path, test_data: Path) -> None:
    finding = examine(test_data / "tokenizers" / "qwen3", template)
    assert finding.used.startswith("refused") == (template.stem in REFUSED), finding
    assert finding.row() in rows_of_page(), "Run python -m support.template_episodes in tests."


def test_the_page_lists_all_templates_and_nothing_else() -> None:
    listed = [row.split(" | ")[0].removeprefix("| ") for row in rows_of_page()]
    assert listed == [path.stem for path in template_files()]


def test_at_least_forty_templates_are_used_as_they_are() -> None:
    """The others have no place for tools and get Corral's; the test above checks each row."""
    own = [row for row in rows_of_page() if " | its own | " in row]
    assert len(own) >= 40, "Install TRL as make does: pip install --no-deps trl==1.16.0"


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_a_refusal_names_the_first_tokens_that_differ(name: str, test_data: Path) -> None:
    template = next(path for path in template_files() if path.stem == name)
    tokenizer, stops = dressed(test_data / "tokenizers" / "qwen3", template)
    with pytest.raises(TemplateError, match=r"first difference at token \d+: expected '.*found '"):
        ChatFormat.for_tokenizer(tokenizer, extra_stop_ids=stops, tools=[TOOL])


def test_gpt_oss_demonstrates_one_call_a_message(test_data: Path) -> None:
    chat = _gpt_oss(test_data)
    with pytest.raises(TemplateError, match="1 of the 2 calls of 'order'"):
        chat.turn_ids(said({"item": "a"}, {"item": "b"}))


def test_gpt_oss_reads_a_call_as_the_model_writes_it(test_data: Path) -> None:
    """The template names the recipient before the channel, the model after it."""
    chat = _gpt_oss(test_data)
    tokenizer = chat.renderer.tokenizer
    text = (
        "<|channel|>analysis<|message|>Tea.<|end|><|start|>assistant<|channel|>commentary<|message|>"
        "I order.<|end|><|start|>assistant<|channel|>commentary to=functions.order "
        '<|constrain|>json<|message|>{"item": "tea"}<|call|>'
    )
    turn = chat.parse(tokenizer.encode(text), finish=Finish.STOP)
    assert turn.as_message() == said({"item": "tea"}, content="I order.", reasoning="Tea.")


def _gpt_oss(test_data: Path) -> ChatFormat:
    template = next(path for path in template_files() if path.stem == "gptoss")
    tokenizer, stops = dressed(test_data / "tokenizers" / "qwen3", template)
    return ChatFormat.for_tokenizer(tokenizer, extra_stop_ids=stops, tools=[TOOL])
