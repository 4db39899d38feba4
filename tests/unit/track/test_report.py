import logging
import math
import re
from html.parser import HTMLParser

import pytest

from corral.errors import MissingExtraError
from corral.records import Finish, Outcome, Sampled, SpanKind, Transcript
from corral.track import RunFolder, SavedEpisode, StageResult, render_report, write_report
from corral.track.curves import curves_of, running_mean
from corral.track.samples import choose, content_text, number, token_cells, token_texts, visible

ATTACK = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'&"


class Elements(HTMLParser):
    """Collects what a browser would build: tags with attributes, and text."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text += data


def parsed(page: str) -> Elements:
    elements = Elements()
    elements.feed(page)
    return elements


def play(run: RunFolder, make_episode, **changes) -> None:
    for step in range(1, 8):
        run.append_metrics("grpo", step, {"reward": step / 8, "other": 1.0}, time_s=float(step))
    run.write_episodes("grpo", 7, [make_episode(**changes)], advantages=[0.75])


@pytest.mark.report("P044", "P189")
def test_the_page_shows_curves_tables_settings_and_samples(run: RunFolder, make_episode):
    play(run, make_episode)
    run.write_config("[grpo]\nsteps = 7                                   # --set\n")
    run.write_summary(
        asked={"recipe": "guess"},
        stages=[
            StageResult(name="base model", metrics={"win_rate": 0.0, "guesses": None}),
            StageResult(name="after grpo", metrics={"win_rate": 0.5, "guesses": 4.25}, seconds=65),
        ],
        wall_time_s=3723.0,
    )
    path = write_report(run)
    assert path == run.report_path
    elements = parsed(path.read_text(encoding="utf-8"))
    assert sum(tag == "svg" for tag, _ in elements.tags) == 2
    shown = ["1:02:03", "base model", "0.0%", "50.0%", "4.25", "1:05", "–", "--set", "steps = 7"]
    shown += ["guess(n=7)", "hm", "0.75", "highest reward", "1 more metrics", "transformers"]
    for text in shown:
        assert text in elements.text, text
    titles = [attributes["title"] for tag, attributes in elements.tags if attributes.get("title")]
    assert "sampled · id 21 · logprob -2.5000 · p 8.2% · weights v3" in titles
    assert "tool · id 30" in titles


def test_the_page_needs_no_network_and_runs_no_script(run: RunFolder, make_episode):
    play(run, make_episode)
    page = render_report(run)
    elements = parsed(page)
    assert not {"script", "link", "iframe", "img", "image"} & {tag for tag, _ in elements.tags}
    assert not [name for _, attrs in elements.tags for name in attrs if name.startswith("on")]
    addresses = set(re.findall(r"https?://[^\s\"'<]+", page))
    assert addresses <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    assert "default-src 'none'" in page


@pytest.mark.report("P218")
def test_nothing_a_run_says_becomes_html(tmp_path, make_episode):
    run = RunFolder(tmp_path / "<b>run").create()
    play(
        run,
        make_episode,
        messages=(
            {"role": "user", "content": [{"type": "text", "text": ATTACK}]},
            {
                "role": "assistant",
                "content": ATTACK,
                "reasoning_content": ATTACK,
                "tool_calls": [{"function": {"name": ATTACK, "arguments": {ATTACK: ATTACK}}}],
            },
            {"role": "tool", "name": ATTACK, "content": ATTACK},
        ),
        rewards={ATTACK: 1.0, "b": 2.0},
        metrics={ATTACK: 1.0},
        error=ATTACK,
    )
    run.append_metrics("grpo", 8, {ATTACK: 1.0, "$x_$ <b>": 2.0})
    run.write_config(f"# {ATTACK}\n")
    run.write_summary(
        asked={"x": ATTACK}, stages=[StageResult(name=ATTACK, metrics={ATTACK: ATTACK})]
    )
    elements = parsed(render_report(run, decode=lambda ids: [ATTACK] * len(ids)))
    assert not {"script", "img"} & {tag for tag, _ in elements.tags}
    assert sum(tag == "b" for tag, _ in elements.tags) == 3  # the three role labels
    assert elements.text.count("<script>alert(1)</script>") > 15


def test_a_page_can_be_made_of_an_empty_or_broken_run(run: RunFolder, caplog):
    assert "not finished" in render_report(run)
    run.metrics_path.write_bytes(b'{"stage": "gr')
    (run.episodes_path / "grpo-000001.jsonl.zst").write_bytes(b"damaged")
    with caplog.at_level(logging.WARNING):
        assert "not finished" in render_report(run)


def test_without_matplotlib_the_page_says_what_to_install(run, make_episode, monkeypatch):
    def missing(module: str, *, extra: str):
        raise MissingExtraError(module)

    monkeypatch.setattr("corral.track.curves.require", missing)
    play(run, make_episode)
    page = render_report(run)
    assert "<svg" not in page
    assert "corral[train]" in page


def test_the_same_run_gives_the_same_page(run: RunFolder, make_episode):
    play(run, make_episode)
    assert render_report(run) == render_report(run)


def test_ids_of_the_curves_on_a_page_do_not_clash(run: RunFolder, make_episode):
    play(run, make_episode)
    groups = re.findall(r'<clipPath id="([^"]+)"', render_report(run))
    assert len(groups) == len(set(groups)) == 2


def test_unknown_and_non_finite_values_are_left_out_of_a_curve_and_counted(run: RunFolder):
    for step, value in enumerate([0.5, None, math.nan, math.inf, 0.25]):
        run.append_metrics("grpo", step, {"loss": value, "never": None})
    (curve,) = curves_of(run.read_metrics())
    assert (curve.steps, curve.values, curve.left_out) == ((0, 4), (0.5, 0.25), 3)


def test_headlines_come_first_and_in_their_order(run: RunFolder):
    run.append_metrics("grpo", 1, dict.fromkeys(["zeta", "loss", "alpha", "kl", "reward"], 1.0))
    names = [curve.name for curve in curves_of(run.read_metrics())]
    assert names == ["reward", "loss", "kl", "alpha", "zeta"]


def test_the_running_mean_follows_a_line_and_flattens_noise():
    assert running_mean([2.0] * 30) == [2.0] * 30
    assert running_mean([float(x) for x in range(30)])[10] == pytest.approx(10.0)
    noise = [float(x % 2) for x in range(100)]
    assert max(abs(value - 0.5) for value in running_mean(noise)) < 0.1


def saved(make_episode, reward: float | None) -> SavedEpisode:
    return SavedEpisode(episode=make_episode(reward=reward))


def test_samples_spread_over_the_rewards(make_episode):
    episodes = [saved(make_episode, reward) for reward in (0.1, None, 0.9, 0.5, 0.3, 0.7)]
    chosen = [(label, one.episode.reward) for label, one in choose(episodes, 3)]
    assert chosen == [("highest reward", 0.9), ("median reward", 0.5), ("lowest reward", 0.1)]


def test_episodes_without_a_reward_are_shown_when_there_are_no_others(make_episode):
    episodes = [SavedEpisode(episode=make_episode(reward=None, outcome=Outcome.TIMED_OUT))]
    assert choose(episodes, 3) == [("not scored", episodes[0])]
    assert choose([], 3) == []


@pytest.mark.parametrize("decode", [None, lambda ids: ["one"], lambda ids: 1 / 0])
def test_tokens_are_shown_as_ids_where_decode_does_not_serve(decode):
    assert token_texts([7, 8], decode) == ["7 ", "8 "]


def test_a_branch_is_announced_and_an_impossible_token_has_a_title():
    drawn = Sampled(ids=(9,), logprobs=(-math.inf,), finish=Finish.STOP, version=0)
    transcript = (
        Transcript()
        .append(SpanKind.PROMPT, [1])
        .append_sampled(drawn)
        .append(SpanKind.TOOL, [2], parent=0)
    )
    cells = list(token_cells(transcript.spans, None))
    assert [cell.kind for cell in cells] == ["prompt", "sampled shade3", "branch", "tool"]
    assert "p 0.0%" in cells[1].title
    assert cells[2].text == "↳ branch after part 1"


@pytest.mark.report("P184")
@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, ""),
        ("plain", "plain"),
        ([{"type": "text", "text": "a"}, {"type": "image"}, "b"], "a\n[image]\nb"),
        (5, "5"),
    ],
)
def test_any_content_has_a_text(content: object, text: str):
    assert content_text(content) == text


def test_characters_that_act_on_a_page_are_named():
    assert visible("a\x1b[31m\u202eb\tc\n\x00\ud800") == "a⟨001B⟩[31m⟨202E⟩b\tc\n⟨0000⟩⟨D800⟩"


@pytest.mark.report("P186")
@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (0, "0"), (0.0, "0"), (1234567, "1,234,567"), (0.123456, "0.1235"),
     (math.nan, "nan"), ("20/30", "20/30"), (True, "True")],
)  # fmt: skip
def test_numbers_are_readable_and_unknown_is_not_zero(value: object, text: str):
    assert number(value) == text
