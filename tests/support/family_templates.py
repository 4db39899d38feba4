"""Templates of families that TRL does not ship, written in the form that those families have.

``from support.family_templates import CASES, family_tokenizer``
"""

from typing import Any

from support.toy_tokenizers import Merges, byte_level_tokenizer

LISTING = "{%- if tools -%}{{ 'Tools: ' + tools | tojson + '\\n' }}{%- endif -%}"
MISTRAL_LIST = (
    "{{ bos_token }}{%- for m in messages -%}"
    "{%- if m.role == 'user' -%}"
    "{%- if tools and loop.first -%}{{ '[AVAILABLE_TOOLS]' + tools | tojson }}"
    "{{- '[/AVAILABLE_TOOLS]' }}{%- endif -%}{{ '[INST]' + m.content + '[/INST]' }}"
    "{%- elif m.role == 'tool' -%}"
    "{{ '[TOOL_RESULTS]{\"content\": ' + m.content | tojson + '}[/TOOL_RESULTS]' }}"
    "{%- elif m.tool_calls -%}{{ '[TOOL_CALLS][' }}{%- for c in m.tool_calls -%}"
    '{{ \'{"name": "\' + c.function.name + \'", "arguments": \' + c.function.arguments | tojson '
    "+ ', \"id\": \"' + c.id + '\"}' + ('' if loop.last else ', ') }}{%- endfor -%}"
    "{{ ']' + eos_token }}{%- else -%}{{ m.content + eos_token }}{%- endif -%}{%- endfor -%}"
)
MISTRAL_NAMED = (
    "{{ bos_token }}{%- for m in messages -%}"
    "{%- if m.role == 'user' -%}"
    "{%- if tools and loop.first -%}{{ '[AVAILABLE_TOOLS]' + tools | tojson }}"
    "{{- '[/AVAILABLE_TOOLS]' }}{%- endif -%}{{ '[INST]' + m.content + '[/INST]' }}"
    "{%- elif m.role == 'tool' -%}{{ '[TOOL_RESULTS]' + m.content + '[/TOOL_RESULTS]' }}"
    "{%- else -%}{%- if m.reasoning_content -%}"
    "{{ '[THINK]' + m.reasoning_content + '[/THINK]' }}{%- endif -%}{{ m.content }}"
    "{%- for c in m.tool_calls or [] -%}"
    "{{ '[TOOL_CALLS]' + c.function.name + '[ARGS]' + c.function.arguments | tojson }}"
    "{%- endfor -%}{{ eos_token }}{%- endif -%}{%- endfor -%}"
)
_DEEPSEEK = (
    LISTING + "{%- for m in messages -%}"
    "{%- if m.role == 'user' -%}{{ '<｜User｜>' + m.content + '<｜Assistant｜>' }}"
    "{%- elif m.role == 'tool' -%}RESULT"
    "{%- else -%}{{ m.content }}{%- for c in m.tool_calls or [] -%}"
    "{{ '<｜tool▁calls▁begin｜>' if loop.first else 'BETWEEN' }}CALL"
    "{{ '<｜tool▁calls▁end｜>' if loop.last }}{%- endfor -%}{{ eos_token }}"
    "{%- endif -%}{%- endfor -%}"
)
_RESULTS = (
    "{{ '<｜tool▁outputs▁begin｜>' if loop.previtem.role != 'tool' }}"
    "{{ '<｜tool▁output▁begin｜>' + m.content + '<｜tool▁output▁end｜>' }}"
    "{{ '<｜tool▁outputs▁end｜>' if loop.last or loop.nextitem.role != 'tool' }}"
)
DEEPSEEK_V3 = (
    _DEEPSEEK.replace("RESULT", _RESULTS)
    .replace("BETWEEN", "\\n")
    .replace(
        "CALL",
        "{{ '<｜tool▁call▁begin｜>function<｜tool▁sep｜>' + c.function.name + '\\n```json\\n' "
        "+ c.function.arguments + '\\n```<｜tool▁call▁end｜>' }}",
    )
)
DEEPSEEK_V31 = (
    _DEEPSEEK.replace(
        "RESULT", "{{ '<｜tool▁output▁begin｜>' + m.content + '<｜tool▁output▁end｜>' }}"
    )
    .replace("BETWEEN", "")
    .replace(
        "CALL",
        "{{ '<｜tool▁call▁begin｜>' + c.function.name + '<｜tool▁sep｜>' "
        "+ c.function.arguments | tojson + '<｜tool▁call▁end｜>' }}",
    )
)
_COHERE = (
    LISTING + "{%- for m in messages -%}{{ '<|START_OF_TURN_TOKEN|><|' + m.role + '|>' }}"
    "{%- if m.role == 'assistant' -%}{%- if m.reasoning_content -%}"
    "{{ '<|START_THINKING|>' + m.reasoning_content + '<|END_THINKING|>' }}{%- endif -%}"
    "{%- if m.tool_calls -%}OPEN{%- for c in m.tool_calls -%}"
    '{{ \'\\n    {"tool_name": "\' + c.function.name + \'", "parameters": \' '
    "+ c.function.arguments | tojson + '}' + ('' if loop.last else ',') }}{%- endfor -%}CLOSE"
    "{%- else -%}{{ SAID }}{%- endif -%}{%- else -%}{{ m.content }}{%- endif -%}"
    "{{ '<|END_OF_TURN_TOKEN|>' }}{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{ '<|START_OF_TURN_TOKEN|><|assistant|>' }}{%- endif -%}"
)
COHERE_A = (
    _COHERE.replace("OPEN", "{{ '<|START_ACTION|>[' }}")
    .replace("CLOSE", "{{ '\\n]<|END_ACTION|>' }}")
    .replace("SAID", "'<|START_RESPONSE|>' + m.content + '<|END_RESPONSE|>'")
)
COHERE_R = (
    _COHERE.replace("OPEN", "{{ 'Action: ```json\\n[' }}")
    .replace("CLOSE", "{{ '\\n]```' }}")
    .replace("SAID", "m.content")
)
PHI4 = (
    LISTING + "{%- for m in messages -%}{{ '<|' + m.role + '|>' + m.content }}"
    "{%- if m.tool_calls -%}{{ '<|tool_call|>[' }}{%- for c in m.tool_calls -%}"
    '{{ \'{"name": "\' + c.function.name + \'", "arguments": \' + c.function.arguments | tojson '
    "+ '}' + ('' if loop.last else ', ') }}{%- endfor -%}{{ ']<|/tool_call|>' }}{%- endif -%}"
    "{{ '<|end|>' }}{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{ '<|assistant|>' }}{%- endif -%}"
)

MISTRAL_V3 = MISTRAL_LIST.replace("loop.first", "loop.index0 == ns.last").replace(
    "{{ bos_token }}",
    "{{ bos_token }}{%- set ns = namespace(last=0) -%}{%- for m in messages -%}"
    "{%- if m.role == 'user' -%}{%- set ns.last = loop.index0 -%}{%- endif -%}{%- endfor -%}",
)
"""Tools stand before the last question."""
DEEPSEEK_V31_THINKS = DEEPSEEK_V31.replace(
    "<｜Assistant｜>' }}",
    "<｜Assistant｜>' }}{%- if loop.last or messages[loop.index0 + 1].role == 'assistant' -%}"
    "{{ '<think>' if thinking and loop.last else '</think>' }}{%- endif -%}",
)
"""Reasoning is opened after a question and never after a result, and left out of history."""
LLAMA4 = (
    LISTING + "{%- for m in messages -%}{{ '<|header_start|>' + m.role + '<|header_end|>\n\n' }}"
    "{%- if m.tool_calls -%}{{ '<|python_start|>' + m.content + '<|python_end|>' }}"
    '{%- for c in m.tool_calls -%}{{ \'{"name": "\' + c.function.name + \'", "parameters": \' '
    "+ c.function.arguments | tojson + '}' }}{%- endfor -%}"
    "{%- elif m.role == 'tool' -%}{{ m.content | tojson }}{%- else -%}{{ m.content }}{%- endif -%}"
    "{{ '<|eot|>' }}{%- endfor -%}"
    "{%- if add_generation_prompt -%}"
    "{{ '<|header_start|>assistant<|header_end|>\n\n' }}{%- endif -%}"
)
_ARGUMENT = (
    "{%- macro arg(v) -%}"
    "{%- if v is none -%}null"
    "{%- elif v is string -%}{{ '<escape>' + v + '<escape>' }}"
    "{%- elif v is boolean -%}{{ 'true' if v else 'false' }}"
    "{%- elif v is mapping -%}{{ '{' }}{%- for k, e in v | dictsort -%}"
    "{{ k + ':' + arg(e) + ('' if loop.last else ',') }}{%- endfor -%}{{ '}' }}"
    "{%- elif v is sequence -%}{{ '[' }}{%- for e in v -%}"
    "{{ arg(e) + ('' if loop.last else ',') }}{%- endfor -%}{{ ']' }}"
    "{%- else -%}{{ v }}{%- endif -%}{%- endmacro -%}"
)
FUNCTION_GEMMA = (
    _ARGUMENT + "{{ bos_token }}{%- if tools -%}{{ '<start_of_turn>developer\n' }}"
    "{%- for t in tools -%}{{ '<start_function_declaration>declaration:' + t.function.name }}"
    "{{ '{description:<escape>' + t.function.description + '<escape>,parameters:' }}"
    "{{ arg(t.function.parameters) + '}<end_function_declaration>' }}{%- endfor -%}"
    "{{ '<end_of_turn>\n' }}{%- endif -%}"
    "{%- set ns = namespace(before='') -%}{%- for m in messages -%}"
    "{%- if m.role == 'tool' -%}{{ '<start_function_response>' if ns.before == 'tool' }}"
    "{{ 'response:' + m.name + '{value:<escape>' + m.content + '<escape>}' }}"
    "{{ '<end_function_response>' }}"
    "{%- else -%}{%- if ns.before != 'tool' -%}"
    "{{ '<start_of_turn>' + ('model' if m.role == 'assistant' else m.role) + '\n' }}{%- endif -%}"
    "{{ m.content }}{%- for c in m.tool_calls or [] -%}"
    "{{ '<start_function_call>call:' + c.function.name + arg(c.function.arguments) }}"
    "{{ '<end_function_call>' + ('<start_function_response>' if loop.last else '') }}{%- endfor -%}"
    "{{ '' if m.tool_calls else '<end_of_turn>\n' }}{%- endif -%}"
    "{%- set ns.before = m.role -%}{%- endfor -%}"
    "{%- if add_generation_prompt and ns.before != 'tool' -%}{{ '<start_of_turn>model\n' }}"
    "{%- endif -%}"
)

_DEEPSEEK_TAGS = (
    *("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>", "<｜tool▁call▁begin｜>"),
    *("<｜tool▁call▁end｜>", "<｜tool▁sep｜>", "<｜tool▁output▁end｜>", "<think>", "</think>"),
)

CASES: dict[str, tuple[str, str, str, tuple[str, ...]]] = {
    "mistral list": (
        "mistral",
        MISTRAL_LIST,
        "</s>",
        ("[TOOL_CALLS]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]", "[INST]", "[/INST]"),
    ),
    "mistral named": (
        "mistral",
        MISTRAL_NAMED,
        "</s>",
        ("[TOOL_CALLS]", "[ARGS]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]", "[THINK]", "[/THINK]"),
    ),
    "mistral v3": (
        "mistral",
        MISTRAL_V3,
        "</s>",
        ("[TOOL_CALLS]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]", "[INST]", "[/INST]"),
    ),
    "deepseek v3": (
        "deepseek",
        DEEPSEEK_V3,
        "<｜end▁of▁sentence｜>",
        _DEEPSEEK_TAGS,
    ),
    "deepseek v3.1": (
        "deepseek",
        DEEPSEEK_V31,
        "<｜end▁of▁sentence｜>",
        _DEEPSEEK_TAGS,
    ),
    "deepseek v3.1 thinks": (
        "deepseek",
        DEEPSEEK_V31_THINKS,
        "<｜end▁of▁sentence｜>",
        _DEEPSEEK_TAGS,
    ),
    "llama 4": (
        "llama",
        LLAMA4,
        "<|eot|>",
        ("<|header_start|>", "<|header_end|>", "<|python_start|>", "<|python_end|>"),
    ),
    "function gemma": (
        "function gemma",
        FUNCTION_GEMMA,
        "<end_of_turn>",
        ("<start_of_turn>", "<start_function_call>", "<end_function_call>", "<escape>",
         "<start_function_response>", "<end_function_response>"),
    ),
    "cohere a": (
        "cohere",
        COHERE_A,
        "<|END_OF_TURN_TOKEN|>",
        ("<|START_ACTION|>", "<|END_ACTION|>", "<|START_THINKING|>", "<|END_THINKING|>",
         "<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|START_OF_TURN_TOKEN|>"),
    ),
    "cohere r": ("cohere", COHERE_R, "<|END_OF_TURN_TOKEN|>", ("<|START_OF_TURN_TOKEN|>",)),
    "phi 4": ("phi", PHI4, "<|end|>", ("<|tool_call|>", "<|/tool_call|>", "<|assistant|>")),
}  # fmt: skip
"""By name: the syntax of its calls, the template, what ends a turn, and its other tokens."""

MORE_STOPS = {"function gemma": ("<start_function_response>",)}
"""What the generation configs of a family name beside the end of a turn."""


def family_tokenizer(name: str, merges: Merges = ()) -> tuple[Any, list[int]]:
    """A tokenizer with a family's template and tokens; and the ids of its further stop tokens."""
    _, source, stop, markers = CASES[name]
    tokenizer = byte_level_tokenizer(
        chat_template=source, eos=stop, plain_tags=markers, merges=merges
    )
    return tokenizer, [tokenizer.convert_tokens_to_ids(text) for text in MORE_STOPS.get(name, ())]
