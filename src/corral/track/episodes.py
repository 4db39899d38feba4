"""Episodes on disk: JSON lines under zstd, with every token, logprob, reward part and timing.

One line is one episode::

    {"task": {"index", "prompt", "columns", "environment", "seed"}, "member", "messages",
     "spans": [{"kind", "ids", "parent", "mask", "logprobs", "version"}], "outcome", "turns",
     "tools": {"calls", "failures", "malformed"}, "rewards", "reward", "advantage", "seconds",
     "metrics", "error", "completion_start"}

``mask`` is 1 where the span's ids were sampled and are trained. Unknown values are null, never 0.
A span with images has ``"images": [{"start", "stop", "tokens", "file"}]`` as well, and blocks of
messages name the same files, which lie beside the episodes.
"""

import io
import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import zstandard

from corral.records import (
    Episode,
    ModelImage,
    Outcome,
    PlacedImage,
    Span,
    SpanKind,
    Task,
    ToolCounts,
    Transcript,
)
from corral.track.atomic import write_atomically
from corral.track.jsonable import as_number, dumps
from corral.track.pictures import FOLDER, PictureFiles

logger = logging.getLogger(__name__)

_COMPRESSION_LEVEL = 6
"""A step's episodes take milliseconds at this level and are about a tenth of their JSON."""
_READ_BYTES = 1 << 18


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedEpisode:
    """An episode as it was saved, with what training made of it."""

    episode: Episode
    advantage: float | None = None
    """None when it was not trained on."""


def write_episodes(
    path: Path,
    episodes: Sequence[Episode],
    *,
    advantages: Sequence[float | None] | None = None,
) -> None:
    """Write one file of episodes in one step: it is complete or it is not there.

    Args:
        advantages: One for each episode, in the same order.
    """
    if advantages is not None and len(advantages) != len(episodes):
        raise ValueError(f"{len(advantages)} advantages for {len(episodes)} episodes.")
    values = advantages if advantages is not None else [None] * len(episodes)
    pictures = PictureFiles(path.parent)
    lines = [
        dumps(_episode_fields(episode, advantage, pictures)) + "\n"
        for episode, advantage in zip(episodes, values, strict=True)
    ]
    compressor = zstandard.ZstdCompressor(level=_COMPRESSION_LEVEL, write_checksum=True)
    write_atomically(path, compressor.compress("".join(lines).encode("ascii")))


def read_episodes(path: Path) -> Iterator[SavedEpisode]:
    """The episodes of one file in order; a damaged or cut file gives those before the damage."""
    for raw in _raw_lines(path):
        try:
            fields = json.loads(raw)
            yield SavedEpisode(episode=_episode(fields), advantage=as_number(fields["advantage"]))
        except (ValueError, KeyError, TypeError) as error:
            logger.warning("%s: skipped a damaged episode (%s)", path, error)


def _raw_lines(path: Path) -> Iterator[bytes]:
    # Only b"\n" ends a line: text may hold U+2028 and its kind, which str.splitlines() splits at.
    rest = b""
    with path.open("rb") as file:
        reader = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
        while True:
            try:
                block = reader.read(_READ_BYTES)
            except (zstandard.ZstdError, io.UnsupportedOperation) as error:
                logger.warning("%s: damaged, read up to there (%s)", path, error)
                return
            if not block:
                break
            *lines, rest = (rest + block).split(b"\n")
            yield from (line for line in lines if line)
    if rest:
        logger.warning("%s: cut short, its last episode is incomplete", path)


def _episode_fields(
    episode: Episode, advantage: float | None, pictures: PictureFiles
) -> dict[str, Any]:
    fields = _fields(episode, advantage)
    if not _has_images(episode):
        return fields
    told = {name: pictures.replaced(fields[name]) for name in ("task", "messages")}
    return fields | told


def _has_images(episode: Episode) -> bool:
    if any(span.images for span in episode.transcript.spans):
        return True
    # A fault may have ended the episode before the model saw its images.
    contents = [message.get("content") for message in (*episode.task.prompt, *episode.messages)]
    return any(isinstance(content, list) for content in contents)


def _fields(episode: Episode, advantage: float | None) -> dict[str, Any]:
    task = episode.task
    return {
        "task": {
            "index": task.index,
            "prompt": task.prompt,
            "columns": task.columns,
            "environment": task.environment,
            "seed": task.seed,
        },
        "member": episode.member,
        "messages": episode.messages,
        "spans": [_span_fields(span) for span in episode.transcript.spans],
        "outcome": episode.outcome,
        "turns": episode.turns,
        "tools": {
            "calls": episode.tools.calls,
            "failures": episode.tools.failures,
            "malformed": episode.tools.malformed,
        },
        "rewards": episode.rewards,
        "reward": episode.reward,
        "advantage": advantage,
        "seconds": episode.seconds,
        "metrics": episode.metrics,
        "error": episode.error,
        "completion_start": episode.completion_start,
    }


def _span_fields(span: Span) -> dict[str, Any]:
    return {
        "kind": span.kind,
        "ids": span.ids,
        "parent": span.parent,
        "mask": int(span.kind is SpanKind.SAMPLED),
        "logprobs": span.logprobs,
        "version": span.version,
        **({"images": [_image_fields(one) for one in span.images]} if span.images else {}),
    }


def _image_fields(placed: PlacedImage) -> dict[str, Any]:
    image = placed.image
    return {
        "start": placed.start,
        "stop": placed.stop,
        "tokens": image.tokens,
        "file": f"{FOLDER}/{image.digest}.png",
    }


def _episode(fields: Mapping[str, Any]) -> Episode:
    task = fields["task"]
    return Episode(
        task=Task(
            index=task["index"],
            prompt=tuple(task["prompt"]),
            columns=task["columns"],
            environment=task["environment"],
            seed=task["seed"],
        ),
        member=fields["member"],
        messages=tuple(fields["messages"]),
        transcript=Transcript(tuple(_span(span) for span in fields["spans"])),
        outcome=Outcome(fields["outcome"]),
        turns=fields["turns"],
        tools=ToolCounts(**fields["tools"]),
        rewards=_numbers(fields["rewards"]),
        reward=as_number(fields["reward"]),
        seconds=_numbers(fields["seconds"]),
        metrics=_numbers(fields["metrics"]),
        error=fields["error"],
        completion_start=fields["completion_start"],
    )


def _span(fields: Mapping[str, Any]) -> Span:
    logprobs = fields["logprobs"]
    return Span(
        kind=SpanKind(fields["kind"]),
        ids=tuple(fields["ids"]),
        parent=fields["parent"],
        logprobs=None if logprobs is None else tuple(as_number(value) for value in logprobs),
        version=fields["version"],
        images=tuple(_image(image) for image in fields.get("images", ())),
    )


def _image(fields: Mapping[str, Any]) -> PlacedImage:
    name = fields["file"]
    image = ModelImage(digest=Path(name).stem, picture=name, tokens=fields["tokens"])
    return PlacedImage(image=image, start=fields["start"], stop=fields["stop"])


def _numbers(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: as_number(value) for name, value in fields.items()}
