"""The scores that READMEs of worlds state are those of their players, in 500 games."""

import re
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import pytest

import corral.worlds
from corral.hosting import find_environment
from corral.worlds import WORLDS
from corral.worlds.play import play_episodes
from support.examples import skip_without
from support.worlds_here import WORLDS_HERE

EPISODES = 500

SCORES = re.compile(
    r"^\| (?:(?P<world>\S+) \| )?(?P<player>\w+) \| (?P<won>[\d.]+) % \| [\d.–]+ "
    r"\| (?P<reward>-?[\d.]+) \|$",
    re.MULTILINE,
)


class Score(NamedTuple):
    world: str
    player: str
    won: str
    """Games of a hundred."""
    reward: str
    """The mean."""


def stated() -> list[Score]:
    pages = sorted(Path(corral.worlds.__file__).parent.glob("*/README.md"))
    return [
        Score(row["world"] or page.parent.name, row["player"], row["won"], row["reward"])
        for page in pages
        for row in SCORES.finditer(page.read_text(encoding="utf-8"))
    ]


def test_every_player_of_every_world_has_a_score():
    have = {(score.world, score.player) for score in stated()}
    assert have >= {(name, player) for name in WORLDS_HERE for player in WORLDS[name].policies}


def each_score() -> list[Any]:
    """With a mark on those of a simulator, whose games take minutes."""
    return [
        pytest.param(
            score,
            id=f"{score.world}-{score.player}",
            marks=[pytest.mark.stress] if score.world == "driving" else [],
        )
        for score in stated()
    ]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("score", each_score())
def test_a_player_has_its_score(score: Score):
    if score.world.startswith("openspiel:"):
        pytest.importorskip("pyspiel", reason="needs corral[openspiel]")
    skip_without(score.world)
    world = find_environment(score.world)
    games = list(play_episodes(world, world.policy(score.player), episodes=EPISODES, seed=0))
    assert not [game.error for game in games if game.error]
    won = 100 * fmean(game.is_win for game in games)
    reward = fmean(game.reward or 0.0 for game in games)
    assert won == pytest.approx(float(score.won), abs=last_digit(score.won))
    assert reward == pytest.approx(float(score.reward), abs=last_digit(score.reward))


def last_digit(number: str) -> float:
    return 10.0 ** -len(number.partition(".")[2])
