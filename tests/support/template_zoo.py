"""Chat templates with the habits that break multi-turn training, one habit each.

``from support.template_zoo import template``; switches may be combined.
"""

PLAIN_CHATML = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
"""Knows no tools: what SmolLM2 ships."""

_TEMPLATE = """
{%- if TOOLS_TEST -%}
{{- '<|im_start|>system\\nTOOLS' -}}
{%- for tool in tools -%}{{- '\\n' + tool | tojson -}}{%- endfor -%}
{{- '<|im_end|>SEPARATOR' -}}
{%- endif -%}
{%- set ns = namespace(last_user=-1, turns=0) -%}
{%- for message in messages -%}
{%- if message.role == 'user' -%}{%- set ns.last_user = loop.index0 -%}{%- endif -%}
{%- endfor -%}
{%- for message in messages -%}
{%- set at_end = loop.last -%}
{%- if message.role == 'assistant' -%}
{%- set ns.turns = ns.turns + 1 -%}
{{- '<|im_start|>assistant\\n' -}}
{%- if message.reasoning_content is defined and (KEEPS_THINK) -%}
{{- '<think>\\n' + message.reasoning_content + '\\n</think>\\n\\n' -}}
{%- endif -%}
{{- message.content -}}
{%- for call in message.tool_calls or [] -%}
CALL_CHECK
{{- '<tool_call>\\n{"name": "' + call.function.name + '", "arguments": ' -}}
{{- ARGUMENTS -}}
{{- '}\\n</tool_call>' -}}
{%- endfor -%}
{{- '<|im_end|>SEPARATOR' -}}
{%- elif message.role == 'tool' -%}
TOOL_MESSAGE
{%- else -%}
{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>SEPARATOR' -}}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\nOPENING' -}}{%- endif -%}
"""

_SINGLE_TOOL = "{{- '<|im_start|>tool\\n' + CONTENT + '<|im_end|>SEPARATOR' -}}"
_GROUPED_TOOLS = """
{%- if loop.first or loop.previtem.role != 'tool' -%}{{- '<|im_start|>user' -}}{%- endif -%}
{{- '\\n<tool_response>\\n' + CONTENT + '\\n</tool_response>' -}}
{%- if at_end or loop.nextitem.role != 'tool' -%}{{- '<|im_end|>SEPARATOR' -}}{%- endif -%}
"""
_NO_LONE_RESULT = """
{%- if loop.first or (loop.previtem.role != 'tool' and not loop.previtem.tool_calls) -%}
{{- raise_exception('A tool message must follow a call.') -}}
{%- endif -%}
"""
_ID_ON_RESULT = """
{%- if message.tool_call_id is not defined or message.tool_call_id | length != 9 -%}
{{- raise_exception('Tool call IDs should be alphanumeric strings with length 9!') -}}
{%- endif -%}
"""
_ONE_CALL = """
{%- if message.tool_calls | length > 1 -%}
{{- raise_exception('This model only supports single tool-calls at once!') -}}
{%- endif -%}
"""


def template(
    *,
    separator: str = "\\n",
    keeps_think: str = "true",
    grouped: bool = False,
    arguments: str = "call.function.arguments | tojson",
    content: str = "message.content",
    tools_test: str = "tools",
    opening: str = "",
    rejects_lone_results: bool = False,
    wants_ids: bool = False,
    one_call: bool = False,
) -> str:
    """A ChatML template with Hermes calls and these habits; texts are Jinja source."""
    checks = [
        _NO_LONE_RESULT if rejects_lone_results else "",
        _ID_ON_RESULT if wants_ids else "",
    ]
    parts = {
        "TOOL_MESSAGE": "".join(checks) + (_GROUPED_TOOLS if grouped else _SINGLE_TOOL),
        "CALL_CHECK": _ONE_CALL if one_call else "",
        "CONTENT": content,
        "SEPARATOR": separator,
        "KEEPS_THINK": keeps_think,
        "ARGUMENTS": arguments,
        "TOOLS_TEST": tools_test,
        "OPENING": opening,
    }
    source = _TEMPLATE
    for name, part in parts.items():
        source = source.replace(name, part)
    return source.strip()


EXTENDABLE = {
    "separator": template(),
    "no separator": template(separator=""),
    "blank line between turns": template(separator="\\n\\n"),
    "drops old thoughts": template(keeps_think="loop.index0 > ns.last_user and at_end"),
    "drops all thoughts from history": template(keeps_think="at_end"),
    "groups results": template(grouped=True),
    "rejects lone results": template(rejects_lone_results=True, grouped=True),
    "wants call ids": template(wants_ids=True),
    "one call a turn": template(one_call=True),
    "mapping arguments only": template(
        arguments="'{' + (call.function.arguments.items() | map('tojson') | join(', '))"
        " | replace('[', '') | replace(']', '') | replace('\", ', '\": ', 1) + '}'"
    ),
    "text arguments only": template(arguments="call.function.arguments + ''"),
    "results as JSON": template(content="message.content | tojson"),
    "trims results": template(content="message.content | trim"),
    "asks whether tools are none": template(tools_test="tools is not none"),
    "opens a thought": template(opening="<think>\\n"),
    "closes a thought": template(opening="<think>\\n\\n</think>\\n\\n", keeps_think="false"),
}
"""Can be trained on; each has to work."""

HOPELESS = {
    "counts turns": template(
        content="message.content + ' (turn ' + ns.turns | string + ' of ' + "
        "messages | length | string + ')'"
    ),
    "forgets old results": template(content="message.content if at_end else '...'"),
}
"""Rendered history changes as the conversation grows; each has to be refused."""
