"""What a played episode must look like, whatever the model said in it."""

import json
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from corral.records import (
    Episode,
    Finish,
    MalformedCall,
    Message,
    Outcome,
    ParsedTurn,
    SpanKind,
    ToolCall,
)
from support.tool_fuzz.bench import KINDS, RAISED, Deed, Deeds
from support.tool_fuzz.coercion import is_fair
from support.tool_fuzz.phrases import Phrases
from support.tool_fuzz.turns import Turn, text_of

LONGEST_ERROR = 2_000
"""Characters of an answer that is an error: what the model wrote is not told back to it in full."""


@dataclass
class Verdicts:
    """What a run saw."""

    turns: Counter[str] = field(default_factory=Counter[str])
    """By kind."""
    calls: int = 0
    malformed: int = 0
    refused: int = 0
    executed: int = 0
    wrong: list[str] = field(default_factory=list[str])
    slowest: tuple[float, str] = (0.0, "")
    """Processor seconds of one parse, and the kind of turn."""

    def object_to(self, what: str, turn: Turn, phrases: Phrases) -> None:
        """Note something wrong."""
        said = text_of(turn, phrases)
        self.wrong.append(f"{phrases.chat.syntax.name}, {turn.kind}: {what} – for {said[:300]!r}")

    def join(self, other: "Verdicts") -> None:
        """Add what another run saw."""
        self.turns.update(other.turns)
        self.calls += other.calls
        self.malformed += other.malformed
        self.refused += other.refused
        self.executed += other.executed
        self.wrong += other.wrong
        self.slowest = max(self.slowest, other.slowest)


def judge(
    episode: Episode, turns: list[Turn], deeds: Deeds, phrases: Phrases, seen: Verdicts
) -> None:
    """Hold an episode against what was said and what was done in it."""
    if episode.outcome not in (Outcome.FINISHED, Outcome.OUT_OF_TOKENS):
        seen.object_to(f"it ended as {episode.outcome}: {episode.error}", turns[-1], phrases)
        return
    if deeds.forbidden or (deeds.resets, deeds.scored) != (1, 1):
        seen.object_to(f"forbidden: {deeds}", turns[-1], phrases)
    sampled = [span.ids for span in episode.transcript.spans if span.kind is SpanKind.SAMPLED]
    if sampled != [turn.ids for turn in turns]:
        seen.object_to("the sampled ids are not in the transcript", turns[-1], phrases)
    counted = [0, 0, 0]
    answers = _answers(episode)
    for number, turn in enumerate(turns):
        done = {at: deed for at, deed in enumerate(deeds.executed) if deed.turn == number}
        said, results = answers[number]
        is_answered = number < len(turns) - 1
        started = time.thread_time()
        parsed = phrases.chat.parse(turn.ids, finish=turn.finish)
        seen.slowest = max(seen.slowest, (time.thread_time() - started, turn.kind))
        problems, counts = _judge_turn(turn, parsed, said, results, done, is_answered)
        for problem in problems:
            seen.object_to(problem, turn, phrases)
        counted = [one + other for one, other in zip(counted, counts, strict=True)]
        seen.turns[turn.kind] += 1
    tools = episode.tools
    if counted != [tools.calls, tools.failures, tools.malformed]:
        seen.object_to(f"counted {counted}, reported {tools}", turns[-1], phrases)
    seen.calls += tools.calls
    seen.malformed += tools.malformed
    seen.refused += tools.failures - tools.malformed
    seen.executed += len(deeds.executed)


def _answers(episode: Episode) -> list[tuple[Message, list[Message]]]:
    """Each assistant message with the tool messages after it."""
    found: list[tuple[Message, list[Message]]] = []
    for message in episode.messages[episode.completion_start :]:
        if message["role"] == "assistant":
            found.append((message, []))
        else:
            found[-1][1].append(message)
    return found


def _judge_turn(
    turn: Turn,
    parsed: ParsedTurn,
    said: Message,
    results: list[Message],
    done: dict[int, Deed],
    is_answered: bool,
) -> tuple[list[str], tuple[int, int, int]]:
    """Problems, and (calls, failures, malformed) as they should be counted."""
    problems = _unprintable([said, *results])
    if _gist(parsed.as_message()) != _gist(said):
        problems.append(f"read again: {parsed.as_message()!r:.150}, not {said!r:.150}")
    if turn.is_due and turn.allowed and not parsed.calls:
        problems.append("a call that is due was not read as one")
    if turn.finish is Finish.LENGTH and done:
        problems.append("a call that the limit cut was executed")
    if not is_answered:
        problems += ["executed in a last turn"] * bool(done)
        if parsed.calls and turn.finish is Finish.STOP:
            problems.append("its calls were not answered")
        return problems, (0, 0, 0)
    if len(results) != len(parsed.calls):
        problems.append(f"{len(parsed.calls)} calls have {len(results)} answers")
        return problems, (0, 0, 0)
    failures = 0
    ran: list[tuple[str, dict[str, Any]]] = []
    for call, result in zip(parsed.calls, results, strict=True):
        content = str(result["content"])
        is_error = content.startswith("{'error': ") or content.startswith('{"error": ')
        failures += is_error
        if is_error and len(content) > LONGEST_ERROR:
            problems.append(f"an error of {len(content)} characters")
        number = _number_of(content, is_error)
        if number is None:
            problems += [f"no error and no execution: {content[:100]!r}"] * (not is_error)
            continue
        problems += _misdeed(call, done.pop(number, None))
        if isinstance(call, ToolCall):
            ran.append((call.name, call.arguments))
    problems += [f"executed without being told: {deed}"[:200] for deed in done.values()]
    problems += _outside(turn, ran)
    malformed = sum(isinstance(call, MalformedCall) for call in parsed.calls)
    return problems, (len(parsed.calls), failures, malformed)


def _gist(message: Message) -> tuple[str, list[str]]:
    """What is said and which tools are called; an episode keeps arguments as they are taken."""
    names = [call["function"]["name"] for call in message.get("tool_calls", [])]
    return str(message["content"]).strip(), names


def _unprintable(messages: list[Message]) -> list[str]:
    try:
        json.dumps(messages, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, TypeError, RecursionError) as error:
        return [f"a message cannot be written as JSON: {error}"]
    return []


def _number_of(content: str, is_error: bool) -> int | None:
    """Which execution an answer is from."""
    before, found, number = content.partition(f"{RAISED} did " if is_error else "did ")
    if not found or (before and not is_error):
        return None
    return int(number.rstrip("'\"}"))


def _misdeed(call: ToolCall | MalformedCall, deed: Deed | None) -> list[str]:
    """What is wrong with an execution, given what was asked for."""
    if deed is None or isinstance(call, MalformedCall):
        return [f"executed for no call: {call!r:.100} {deed!r:.100}"]
    if deed.name != call.name or call.name not in KINDS:
        return [f"{call.name!r:.50} was asked for and {deed.name!r:.50} executed"]
    kinds = KINDS[call.name]
    return [
        f"{name}={call.arguments[name]!r:.80} was received as {deed.received[name]!r:.80}"
        for name, kind in kinds.items()
        if name in call.arguments and not is_fair(kind, call.arguments[name], deed.received[name])
    ]


def _outside(turn: Turn, ran: list[tuple[str, dict[str, Any]]]) -> list[str]:
    """Executions that this turn does not allow, or that it lacks."""
    if turn.allowed is None:
        return []
    if turn.is_due and ran != turn.allowed:
        return [f"executed {ran!r:.200}, due {turn.allowed!r:.200}"]
    return [f"executed {call!r:.200}" for call in ran if call not in turn.allowed]
