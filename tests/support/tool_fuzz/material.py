"""What hostile calls are made of."""

import json
import random
import re
from typing import Any

from support.tool_fuzz.bench import KINDS
from support.tool_fuzz.phrases import Phrases

NAMES = [
    *("reset", "get_reward", "close", "_hidden", "looked", "made", "registry", "helper", "secret"),
    *("__init__", "__class__", "__dict__", "__getattribute__", "__reduce__", "self", "tool"),
    *(
        "integer.__func__",
        "Bench.integer",
        "integer()",
        "functions.text",
        "text ",
        " text",
        "te xt",
    ),
    *("text\n", "te\nxt", "TEXT", "teхt", "text\0", "", " ", "\0", "null", "{}", "a" * 5000, "🙂"),
    *(
        "os.system",
        "../text",
        "text;reset",
        "text{reset}",
        "{{reset}}",
        "{% reset %}",
        "%s",
        "eval",
    ),
    *("is_done", "done", "metrics", "place", "bind", "call", "find", "nothing", "plain", "still"),
    "a." * 5000 + "text",
]
"""Tools that do not exist, must not be reached, or are spelled oddly."""

KEYS = [
    *("self", "cls", "__class__", "place", "", " ", "name ", "NAME", "n\n", "\0", "k" * 3000, "*"),
    *("**kwargs", "arguments", "deeds", "é", "🙂", "name.x", "0"),
]

_DEEP = 10_000
RAW_VALUES: list[tuple[str, bool]] = [
    *((text, True) for text in ("NaN", "Infinity", "-Infinity", "nan", "inf", "1e999", "-1e999")),
    *((text, True) for text in ("9" * 5000, "-" + "9" * 400 + "e400", "0x" + "f" * 5000)),
    *((text, True) for text in ('{"a": 1, "a": 2}', '"{\\"a\\": 1, \\"a\\": 2}"', '{"a": NaN}')),
    *((text, True) for text in ("[" * _DEEP + "]" * _DEEP, "[" * _DEEP, '{"a":' * _DEEP)),
    *((text, True) for text in ('{"a":' * _DEEP + "1" + "}" * _DEEP, "(" * 500 + ")" * 500)),
    *((text, True) for text in ("-" * 3000 + "1", "not " * 3000 + "x", "1" + "+1" * 5000)),
    *((text, True) for text in ("a" + ".b" * 3000, "f(" * 90 + ")" * 90, "[" * 90 + "]" * 90)),
    *((text, True) for text in ("[1, 2, ", '{"a": 1', "'a': 1}", "{1, 2}", "b'x'", "1+2j", "...")),
    *((text, True) for text in ("lambda: 1", "[x for x in y]", "print(1)", "(1, 2)")),
    *((text, True) for text in ('"\\ud800"', '"\\ud800\\u0041"', "\ud800", '"\0"', '"\\u0000"')),
    *((text, True) for text in ('"unterminated', "'single'", '"""', "\\", '"\\"', '"\\x"', "")),
    *((text, False) for text in ("1", "0", "-0", "1.0", "1e2", "1.5", '"1"', '" 1 "', '"1_000"')),
    *((text, False) for text in ("true", "false", "null", "True", "None", '"true"', '"yes"', "[]")),
    *(
        (text, False)
        for text in ("{}", "[1]", '["1"]', '"[1]"', '{"a": 1}', '"{\\"a\\": \\"1\\"}"')
    ),
    *(
        (text, False)
        for text in ('"left"', '"LEFT"', '"red"', "2", '"2"', "left", "2.0", "99999999")
    ),
    *(
        (text, False)
        for text in ("123456789012345678901234567890", "1e22", "1E400", "１２", '"１２"')
    ),
]
"""Raw text in place of a value, and whether no typed tool may ever take it."""


def any_value(chance: random.Random, depth: int) -> Any:
    """Some JSON value."""
    if depth and chance.random() < 0.25:
        if chance.random() < 0.5:
            return [any_value(chance, depth - 1) for _ in range(chance.randrange(4))]
        keys = [chance.choice(KEYS) for _ in range(chance.randrange(3))]
        return {key: any_value(chance, depth - 1) for key in keys}
    return chance.choice(_SCALARS)


_SCALARS: list[Any] = [
    *(None, True, False, 0, 1, -1, 2, 7, 2**63, 2**200, 0.0, 1.0, 0.5, -0.0, 1e300, 1e-300),
    *("", " ", "1", "-1", "1.0", "1.5", "1e2", "true", "no", "left", "red", "2", "None", "null"),
    *("[1, 2]", '{"a": 1}', '{"a": 1, "a": 2}', "[NaN]", "NaN", "9" * 400, "é世界🙂", "\0", "a\nb"),
    *("\u2028", "'", '"', "\\", "x" * 3000, "0x10", "1_0", "+1", " 1", "١"),
]

VALID: list[tuple[str, dict[str, Any]]] = [
    ("integer", {"n": 3}),
    ("integer", {"n": -12}),
    ("number", {"x": 1.5}),
    ("text", {"name": "tea"}),
    ("text", {"name": "é 世界 🙂 two\nlines"}),
    ("text", {"name": 'it\'s a "quote" with \\ and {braces}'}),
    ("flag", {"on": True}),
    ("items", {"xs": [1, 2, 3]}),
    ("table", {"rows": {"a": 1, "b": 2}}),
    ("choice", {"side": "left"}),
    ("optional", {"n": 4}),
    ("optional", {}),
    ("two", {"name": "tea", "other": "milk"}),
    ("two", {"name": "tea"}),
    ("nothing", {}),
    ("raises", {"name": "now"}),
    ("waits", {"name": "then"}),
    ("still", {"n": 5}),
    ("plain", {"name": "outside"}),
]
"""Calls that have to work, whatever the format."""


def pieces_of(phrases: Phrases) -> list[str]:
    """What a soup is made of: the format's own markers, signs and words, and stray signs."""
    syntax = phrases.chat.syntax
    tokenizer: Any = phrases.chat.renderer.tokenizer
    own = words_of(phrases.form)
    tags = re.findall(r"<[^<>\s]+>|\[[A-Z_]+\]", phrases.form + phrases.before)
    return [
        *own,
        *tags * 3,
        *[syntax.closes, *syntax.reasoning, phrases.opening()] * 3,
        *sorted(tokenizer.get_added_vocab()),
        *KINDS,
        *"{}[]()\"'\\,:;=<>|/\n \0é🙂",
        *("NaN", "1e999", "\\ud800", "null", '{"a": 1}', '"name"', json.dumps({"name": "text"})),
    ]


def words_of(text: str) -> list[str]:
    """The text cut into words, signs and white space."""
    return re.findall(r"\w+|[^\w\s]+|\s+", text)
