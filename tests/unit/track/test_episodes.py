import logging
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from corral.records import Outcome, SpanKind, Transcript
from corral.track import read_episodes, write_episodes


def test_an_episode_is_read_as_it_was_written(tmp_path: Path, make_episode):
    branched = make_episode().transcript.append(SpanKind.TEMPLATE, [5], parent=0)
    episodes = [
        make_episode(),
        make_episode(transcript=branched, outcome=Outcome.TIMED_OUT),
        make_episode(
            reward=None, rewards={}, outcome=Outcome.INFRASTRUCTURE_FAULT, error="socket closed"
        ),
    ]
    path = tmp_path / "e.jsonl.zst"
    write_episodes(path, episodes, advantages=[0.5, None, -1.0])
    saved = list(read_episodes(path))
    assert [one.episode for one in saved] == episodes
    assert [one.advantage for one in saved] == [0.5, None, -1.0]
    assert saved[0].episode.transcript.rows() == episodes[0].transcript.rows()


@pytest.mark.report("P184")
@pytest.mark.parametrize(
    "content",
    [
        None,
        [{"type": "text", "text": "part"}, {"type": "image"}],
        "\x1b[31mred\x1b[0m 😀 \u2028\u0085 \ud800",
        "x" * 1_000_000,
    ],
)
def test_any_message_content_is_kept(tmp_path: Path, make_episode, content: object):
    path = tmp_path / "e.jsonl.zst"
    write_episodes(path, [make_episode(messages=({"role": "tool", "content": content},))])
    (saved,) = read_episodes(path)
    assert saved.episode.messages[0]["content"] == content


def test_foreign_values_in_columns_and_numbers_do_not_stop_saving(tmp_path: Path, make_episode):
    episode = make_episode(rewards={"r": np.float32(0.5)}, metrics={"m": math.inf})
    columns = {"secret": np.int64(4), "tags": {"b", "a"}, "thing": lambda: None}
    episode = replace(episode, task=replace(episode.task, columns=columns))
    path = tmp_path / "e.jsonl.zst"
    write_episodes(path, [episode])
    (saved,) = read_episodes(path)
    assert saved.episode.rewards == {"r": 0.5}
    assert saved.episode.metrics == {"m": math.inf}
    assert saved.episode.task.columns["secret"] == 4
    assert saved.episode.task.columns["tags"] == ["a", "b"]
    assert "function" in saved.episode.task.columns["thing"]


def test_a_logprob_of_minus_infinity_is_kept(tmp_path: Path, make_episode):
    episode = make_episode()
    spans = tuple(
        replace(span, logprobs=(-math.inf, 0.0)) if span.logprobs else span
        for span in episode.transcript.spans
    )
    path = tmp_path / "e.jsonl.zst"
    write_episodes(path, [replace(episode, transcript=Transcript(spans))])
    (saved,) = read_episodes(path)
    assert saved.episode.transcript.spans[1].logprobs == (-math.inf, 0.0)


def test_a_cut_file_gives_the_episodes_before_the_cut(tmp_path: Path, make_episode, caplog):
    rng = np.random.default_rng(0)
    noise = [make_episode(index=index, error=rng.bytes(200_000).hex()) for index in range(4)]
    path = tmp_path / "e.jsonl.zst"
    write_episodes(path, noise)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) * 7 // 10])
    with caplog.at_level(logging.WARNING):
        saved = list(read_episodes(path))
    assert 1 <= len(saved) < 4
    assert [one.episode for one in saved] == noise[: len(saved)]
    assert "cut short" in caplog.text


def test_a_file_that_is_not_zstd_has_no_episodes(tmp_path: Path, caplog):
    path = tmp_path / "e.jsonl.zst"
    path.write_bytes(b"plain text")
    with caplog.at_level(logging.WARNING):
        assert list(read_episodes(path)) == []
    assert "damaged" in caplog.text


def test_advantages_must_match_episodes(tmp_path: Path, make_episode):
    with pytest.raises(ValueError, match="2 advantages for 1 episodes"):
        write_episodes(tmp_path / "e", [make_episode()], advantages=[1.0, 2.0])
