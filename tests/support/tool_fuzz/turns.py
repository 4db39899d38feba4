"""Turns that no well-behaved model writes, made from a seed, with what may come of each."""

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from corral.chat.tokenizer import decode, encode
from corral.records import Finish
from support.tool_fuzz.bench import KINDS
from support.tool_fuzz.material import KEYS, NAMES, RAW_VALUES, VALID, any_value, pieces_of
from support.tool_fuzz.phrases import Phrases

Call = tuple[str, dict[str, Any]]

_STRICT = ("table", "items", "integer", "number", "flag", "choice", "colour", "still", "optional")
"""Tools that take no text."""


@dataclass(frozen=True)
class Turn:
    """One sampled turn."""

    kind: str
    ids: tuple[int, ...]
    finish: Finish
    allowed: list[Call] | None = None
    """The only calls that may be executed; None: whatever the checks of arguments let through."""
    is_due: bool = False
    """All of ``allowed`` must be executed."""


@dataclass
class Hostile:
    """Makes turns for one format."""

    phrases: Phrases
    pieces: list[str] = field(init=False)
    valid: list[tuple[Call, str]] = field(init=False)

    def __post_init__(self) -> None:
        self.pieces = pieces_of(self.phrases)
        written = [(call, self.phrases.call(*call)) for call in VALID]
        self.valid = [(call, text) for call, text in written if text is not None]
        if not self.valid:
            call: Call = ("two", {"name": "tea"})
            self.valid = [(call, self.phrases.filled("two", "name", "tea"))]

    def turn(self, chance: random.Random) -> Turn:
        """A turn of some kind."""
        maker, _ = chance.choices(_MAKERS, weights=_WEIGHTS)[0]
        return maker(self, chance)

    def said(
        self,
        kind: str,
        text: str,
        chance: random.Random,
        allowed: list[Call] | None = None,
        *,
        is_due: bool = False,
        is_bare: bool = False,
    ) -> Turn:
        """The turn that says ``text`` and ends in a stop token, or is as long as it may be."""
        whole = text if is_bare else self.phrases.before + text
        tokenizer = self.phrases.chat.renderer.tokenizer
        # Markers spelled letter by letter are none: neither those of calls nor those of reasoning.
        is_exact = is_due or "reasoning" in kind
        ids = encode(tokenizer, whole) if is_exact else self.spelled(whole, chance)
        if not is_due and chance.random() < 0.1:
            return Turn(f"{kind}, cut by the limit", tuple(ids), Finish.LENGTH, [])
        stop = self.phrases.chat.turn_end.token
        return Turn(kind, (*ids, stop), Finish.STOP, allowed, is_due)

    def spelled(self, text: str, chance: random.Random) -> list[int]:
        """Ids of the text: as the tokenizer has it, or cut at odd places."""
        tokenizer: Any = self.phrases.chat.renderer.tokenizer
        if chance.random() < 0.8 or len(text) > 5000:
            return encode(tokenizer, text)
        cuts = [0, *sorted(chance.randrange(len(text) + 1) for _ in range(len(text) // 5 + 1))]
        pieces = [text[start:end] for start, end in zip(cuts, [*cuts[1:], None], strict=True)]
        clean = [piece.encode("utf-8", "replace").decode() for piece in pieces]
        batch: list[list[int]] = tokenizer(clean, add_special_tokens=False)["input_ids"]
        return [token for ids in batch for token in ids]


def _valid(make: Hostile, chance: random.Random) -> Turn:
    call, text = chance.choice(make.valid)
    return make.said("valid", text, chance, [call], is_due=True)


def _several(make: Hostile, chance: random.Random) -> Turn:
    calls = [chance.choice(make.valid)[0] for _ in range(chance.choice([2, 3, 8, 40]))]
    text = make.phrases.several(calls)
    if text is None:
        return _valid(make, chance)
    return make.said("several", text, chance, calls, is_due=True)


def _cut(make: Hostile, chance: random.Random) -> Turn:
    call, text = chance.choice(make.valid)
    ids = encode(make.phrases.chat.renderer.tokenizer, make.phrases.before + text)
    ids = ids[: chance.randrange(len(ids))]
    if chance.random() < 0.3:
        return Turn("cut by the limit", tuple(ids), Finish.LENGTH, [])
    return Turn("cut", (*ids, make.phrases.chat.turn_end.token), Finish.STOP, [call])


def _raw_value(make: Hostile, chance: random.Random) -> Turn:
    name = chance.choice([name for name in KINDS if KINDS[name]])
    key = chance.choice(list(KINDS[name]))
    raw, is_never = chance.choice(RAW_VALUES)
    other = chance.choice([None, None, None, (key + "x", "o"), ("other", "o")])
    text = make.phrases.filled(name, key, raw, other, quoted=chance.random() < 0.3)
    is_refused = is_never and name in _STRICT
    return make.said("raw value", text, chance, [] if is_refused else None)


def _wrong_type(make: Hostile, chance: random.Random) -> Turn:
    name = chance.choice(list(KINDS))
    keys = [*KINDS[name], *chance.sample(KEYS, chance.choice([0, 0, 0, 1, 3]))]
    given = {key: any_value(chance, 3) for key in keys if chance.random() < 0.9}
    text = make.phrases.call(name, given)
    if text is None:
        text = make.phrases.with_arguments(name, json.dumps(given))
    return make.said("wrong type", text, chance)


def _as_string(make: Hostile, chance: random.Random) -> Turn:
    (name, given), _ = chance.choice(make.valid)
    inner = json.dumps(given)
    if chance.random() < 0.5:
        inner = inner[: chance.randrange(len(inner) + 1)] + chance.choice(["", "}", " x", inner])
    elif chance.random() < 0.3:
        inner = inner.replace("{", '{"name": "twice", ', 1).replace("{", '{"name": "t", ', 1)
    text = make.phrases.with_arguments(name, json.dumps(inner))
    return make.said("arguments as a string", text, chance)


def _no_object(make: Hostile, chance: random.Random) -> Turn:
    arguments = chance.choice(
        ["", "null", "[]", "[1]", "3", '"x"', "{", "{}", "{]", "true", "{{}}"]
    )
    return make.said(
        "arguments are no object", make.phrases.with_arguments("text", arguments), chance
    )


def _twice(make: Hostile, chance: random.Random) -> Turn:
    key = chance.choice(["name", "value"])
    name = {"name": "two", "value": "anything"}[key]
    values = chance.choice([("a", "a"), ("a", "b")])
    text = make.phrases.filled(name, key, values[0], (key, values[1]))
    return make.said("the same key twice", text, chance, [])


def _odd_name(make: Hostile, chance: random.Random) -> Turn:
    name = chance.choice(NAMES)
    key = chance.choice(["name", "n", "self", "place"])
    if chance.random() < 0.5:
        return make.said("odd name", make.phrases.filled(name, key, "1"), chance)
    return make.said("odd name", make.phrases.with_arguments(name, ""), chance)


def _odd_key(make: Hostile, chance: random.Random) -> Turn:
    key = chance.choice(KEYS)
    return make.said("odd key", make.phrases.filled("text", key, "1"), chance)


def _in_reasoning(make: Hostile, chance: random.Random) -> Turn:
    opens, closes = make.phrases.chat.syntax.reasoning
    opens = "" if make.phrases.chat.opens_thinking else opens
    _, text = chance.choice(make.valid)
    inner = chance.choice(["", "Hm. ", opens]) + text
    if chance.random() < 0.5:
        return make.said("in open reasoning", opens + inner, chance, [], is_bare=True)
    after = chance.choice(["", "Done.", opens or "<think>"])
    return make.said("in reasoning", opens + inner + closes + after, chance, [], is_bare=True)


def _after_reasoning(make: Hostile, chance: random.Random) -> Turn:
    opens, closes = make.phrases.chat.syntax.reasoning
    opens = "" if make.phrases.chat.opens_thinking else opens
    (call, text), (_, other) = chance.choice(make.valid), chance.choice(make.valid)
    text = opens + chance.choice(["Hm.", other, opens]) + closes + chance.choice(["", "\n"]) + text
    return make.said("after reasoning", text, chance, [call], is_bare=True)


def _marker_inside(make: Hostile, chance: random.Random) -> Turn:
    marker = "".join(chance.choices(make.pieces, k=chance.choice([1, 1, 2, 5])))
    given = {"name": f"a{marker}b"}
    text = make.phrases.call("text", given)
    if text is None:
        text = make.phrases.filled("two", "name", f"a{marker}b")
        return make.said("marker in a text", text, chance)
    is_plain = make.phrases.quote == '"'  # others do not escape what would end the text
    return make.said("marker in a text", text, chance, [("text", given)] if is_plain else None)


def _nested(make: Hostile, chance: random.Random) -> Turn:
    (_, one), (_, two) = chance.choice(make.valid), chance.choice(make.valid)
    at = chance.randrange(len(one) + 1)
    return make.said("call in a call", one[:at] + two + one[at:], chance)


def _many(make: Hostile, chance: random.Random) -> Turn:
    count = chance.choice([100, 101, 1000])
    texts = [chance.choice(make.valid)[1] for _ in range(3)]
    if chance.random() < 0.5:
        texts[0] = texts[0][: len(texts[0]) // 2]
    return make.said("many calls", "\n".join(texts * (count // 3 + 1)), chance)


def _empty(make: Hostile, chance: random.Random) -> Turn:
    opening, closes = make.phrases.opening(), make.phrases.chat.syntax.closes
    text = chance.choice(
        [opening, closes, opening + closes, f"{opening} {closes}", opening * 3, ""]
    )
    return make.said("empty call", text, chance, [])


def _soup(make: Hostile, chance: random.Random) -> Turn:
    text = "".join(chance.choices(make.pieces, k=chance.randrange(1, 60)))
    return make.said("soup", text, chance, is_bare=chance.random() < 0.5)


def _random_ids(make: Hostile, chance: random.Random) -> Turn:
    tokenizer: Any = make.phrases.chat.renderer.tokenizer
    # Models have more rows in their vocabulary than their tokenizer has texts.
    ids = [chance.randrange(len(tokenizer) + 40) for _ in range(chance.randrange(60))]
    return Turn("random ids", (*ids, make.phrases.chat.turn_end.token), Finish.STOP)


def _flipped(make: Hostile, chance: random.Random) -> Turn:
    text = list(chance.choice(make.valid)[1])
    for _ in range(chance.randrange(1, 5)):
        place = chance.randrange(len(text))
        match chance.randrange(4):
            case 0:
                text[place] = chr(ord(text[place]) ^ (1 << chance.randrange(7)))
            case 1:
                text[place] = chance.choice("\0\x1b\u2028\ud800é\"'{}[]<>|,:\\")
            case 2:
                del text[place]
            case _:
                text.insert(place, chance.choice(make.pieces))
        text = [*"".join(text)] or ["x"]
    return make.said("flipped", "".join(text), chance)


def _spliced(make: Hostile, chance: random.Random) -> Turn:
    (_, one), (_, two) = chance.choice(make.valid), chance.choice(make.valid)
    text = one[: chance.randrange(len(one))] + two[chance.randrange(len(two)) :]
    return make.said("spliced", text, chance)


def _flipped_ids(make: Hostile, chance: random.Random) -> Turn:
    tokenizer: Any = make.phrases.chat.renderer.tokenizer
    ids = make.spelled(make.phrases.before + chance.choice(make.valid)[1], chance)
    for _ in range(chance.randrange(1, 4)):
        ids[chance.randrange(len(ids))] = chance.randrange(len(tokenizer))
    return Turn("flipped ids", (*ids, make.phrases.chat.turn_end.token), Finish.STOP)


def _megabyte(make: Hostile, chance: random.Random) -> Turn:
    size = 1 << 20
    match chance.randrange(5):
        case 0:
            text = make.phrases.filled("text", "name", "x" * size)
        case 1:
            text = make.phrases.filled("x" * size, "name", "1")
        case 2:
            text = make.phrases.filled("text", "x" * size, "1")
        case 3:
            text = make.phrases.filled(
                "items", "xs", "[" + "1," * (size // 16) + "1]", quoted=False
            )
        case _:
            many = ", ".join(f'"k{number}": 1' for number in range(size // 128))
            text = make.phrases.with_arguments("text", "{" + many + "}")
    return make.said("a megabyte", text, chance)


def _blank(make: Hostile, chance: random.Random) -> Turn:
    stop = make.phrases.chat.turn_end.token
    if chance.random() < 0.3:
        return Turn("nothing at all", (), Finish.LENGTH, [])
    ids = encode(make.phrases.chat.renderer.tokenizer, chance.choice(["", " ", "\n", "\0"]))
    return Turn("nothing", (*ids, stop), Finish.STOP, [])


_MAKERS: Sequence[tuple[Callable[[Hostile, random.Random], Turn], float]] = (
    (_valid, 6),
    (_several, 2),
    (_cut, 10),
    (_raw_value, 14),
    (_wrong_type, 10),
    (_as_string, 4),
    (_no_object, 3),
    (_twice, 3),
    (_odd_name, 8),
    (_odd_key, 4),
    (_in_reasoning, 4),
    (_after_reasoning, 3),
    (_marker_inside, 6),
    (_nested, 4),
    (_many, 0.15),
    (_empty, 2),
    (_soup, 6),
    (_random_ids, 2),
    (_flipped, 8),
    (_spliced, 4),
    (_flipped_ids, 3),
    (_megabyte, 0.05),
    (_blank, 0.5),
)
_WEIGHTS = [weight for _, weight in _MAKERS]


def text_of(turn: Turn, phrases: Phrases) -> str:
    """What a turn says, for a report."""
    return decode(phrases.chat.renderer.tokenizer, turn.ids)
