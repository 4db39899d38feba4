"""Chat templates that nobody has seen: each is extended exactly, replaced by Corral's, or refused.

``from support.odd_templates import ODD, Fate``
"""

from enum import Enum

from support.template_zoo import template

_SYSTEM = "{{- '<|im_start|>system\\n' + SAYS + '<|im_end|>\\n' -}}"
_USER = "message.role + '\\n' + message.content"
_TOOL_HEADER = "'<|im_start|>tool\\n'"
_PLAIN = template()
_LISTING = "TOOLS' -}}\n{%- for tool in tools -%}{{- '\\n' + tool | tojson -}}{%- endfor -%}"


class Fate(Enum):
    """What becomes of a template."""

    OWN = "it is used"
    CORRALS = "it changes what tools answer, so that Corral's is used"
    REFUSED = "what is appended would differ from what it renders later"


def _changed(old: str, new: str, source: str = _PLAIN) -> str:
    assert old in source, old
    return source.replace(old, new)


def _result(content: str) -> str:
    return template(content=content)


_ALTERNATES = (
    "{%- for m in messages -%}{%- if (m.role == 'user') != (loop.index0 % 2 == 0) -%}"
    "{{- raise_exception('Roles must alternate user/assistant.') -}}{%- endif -%}{%- endfor -%}"
)
_TOOLS_LAST = (
    "{%- if message.role == 'user' and loop.index0 == ns.last_user and tools -%}"
    "{{- '<|im_start|>system\\nTOOLS' + tools | tojson + '<|im_end|>\\n' -}}{%- endif -%}"
)
_ONLY_FIRST = "{{- '(a result)' if loop.index0 == 2 -}}"

ODD: dict[str, tuple[Fate, str]] = {
    "writes the date": (
        Fate.OWN,
        _SYSTEM.replace("SAYS", "'Today is ' + strftime_now('%d %B %Y') + '.'") + _PLAIN,
    ),
    "begins twice": (Fate.OWN, "{{- bos_token + bos_token -}}" + _PLAIN),
    "uppercases questions": (
        Fate.OWN,
        _changed(_USER, "message.role + '\\n' + message.content | upper"),
    ),
    "strips all contents": (
        Fate.OWN,
        _changed(
            _USER,
            "message.role + '\\n' + message.content | trim",
            _result("message.content | trim"),
        ),
    ),
    "separates with what the last message lacks": (
        Fate.OWN,
        template(separator="' + ('' if at_end and not add_generation_prompt else '\\n--\\n') + '"),
    ),
    "drops reasoning and keeps its end": (
        Fate.OWN,
        template(keeps_think="at_end", opening="<think>\\n").replace(
            "{{- message.content -}}", "{{- '</think>' if not at_end -}}{{- message.content -}}"
        ),
    ),
    "lists tools before the last question": (
        Fate.OWN,
        _changed(
            "{%- set at_end",
            _TOOLS_LAST + "{%- set at_end",
            template(tools_test="false"),
        ),
    ),
    "merges results": (Fate.OWN, template(grouped=True, separator="")),
    "leaves out empty results": (
        Fate.OWN,
        _changed(
            "elif message.role == 'tool' -%}",
            "elif message.role == 'tool' and not message.content -%}"
            "{%- elif message.role == 'tool' -%}",
        ),
    ),
    "cuts long results": (Fate.OWN, _result("message.content[:2000]")),
    "writes results that are JSON otherwise": (
        Fate.OWN,
        _result("('json: ' if message.content[:1] == '{' else '') + message.content"),
    ),
    "uppercases results": (Fate.CORRALS, _result("message.content | upper")),
    "hides results": (Fate.CORRALS, _result("'(hidden)'")),
    "demands alternation": (Fate.REFUSED, _ALTERNATES + _PLAIN),
    "numbers messages": (Fate.REFUSED, _result("loop.index0 | string + ': ' + message.content")),
    "numbers from behind": (Fate.REFUSED, _result("loop.revindex | string + message.content")),
    "marks every second message": (
        Fate.REFUSED,
        _result("('even ' if loop.index0 % 2 == 0 else 'odd ') + message.content"),
    ),
    "marks the first result": (
        Fate.REFUSED,
        _changed(_TOOL_HEADER, f"{_TOOL_HEADER} -}}}}{_ONLY_FIRST}{{{{- ''"),
    ),
    "reminds at the end": (
        Fate.REFUSED,
        _result("message.content + (' Go on.' if at_end else '')"),
    ),
    "forgets what is a dozen messages back": (
        Fate.REFUSED,
        _changed(
            "{%- for message in messages -%}\n{%- set at_end",
            "{%- set messages = messages[:1] + messages[1:][-12:] -%}"
            "{%- for message in messages -%}\n{%- set at_end",
        ),
    ),
    "counts the calls": (
        Fate.REFUSED,
        _changed('{"name": "', '{"id": \' + ns.turns | string + \', "name": "'),
    ),
}  # fmt: skip
