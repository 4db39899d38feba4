"""What the README says about the demo's data is true."""

import re
from pathlib import Path

import pytest

from corral.recipes.scratch import scratch_tokenizer
from corral.worlds import find_world
from corral.worlds.wordle.words import guesses, secrets
from support.docs_blocks import PAGES, ROOT, text_of

README = text_of("README.md")


def test_the_numbers_of_words_are_those_of_the_lists():
    assert f"one of {len(secrets())} common five-letter nouns" in README
    assert f"{len(guesses()):,} words are accepted" in README


def test_the_evaluation_words_are_30_of_those_that_are_trained_on():
    world = find_world("wordle")
    words = [row["secret"] for row in world.evaluation_tasks(30)]
    assert len(set(words)) == 30
    assert set(words) <= set(secrets())
    trained = {row["secret"] for row in world.tasks(0, len(secrets()))}
    assert trained == set(secrets())
    assert [row["secret"] for row in world.evaluation_tasks(30)] == words


def test_the_tokenizer_contains_none_of_the_secrets():
    tokens = [token.lower() for token in scratch_tokenizer(find_world("wordle")).get_vocab()]
    assert [(word, token) for word in secrets() for token in tokens if word in token] == []


def test_no_prompt_contains_its_secret():
    rows = find_world("wordle").tasks(0, len(secrets()))
    assert all(row["secret"] not in row["prompt"].lower() for row in rows)


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_files_of_the_repository(page: str):
    targets = [link for link in re.findall(r"\]\(([^)#]+)\)", text_of(page)) if "://" not in link]
    folder = (ROOT / page).parent
    assert [link for link in targets if not Path(folder / link).exists()] == []


def test_every_loss_and_every_outcome_is_documented():
    from corral.algorithms import LOSSES
    from corral.records import Outcome

    losses = set(re.findall(r"^\| `(\w+)`.*τ|^\| `(\w+)`", text_of("docs/losses.md"), re.MULTILINE))
    named = {name for pair in losses for name in pair if name}
    assert set(LOSSES) <= named
    assert all(f"| `{outcome}` |" in README for outcome in Outcome)


def test_every_option_in_the_losses_page_exists():
    from corral import GRPOConfig

    rows = re.findall(r"^\| (`.*) \|.*\|$", text_of("docs/losses.md"), re.MULTILINE)
    options = [name for row in rows for name in re.findall(r"`([a-z]+_[a-z_]+)`", row)]
    not_options = {"dr_grpo"}
    assert set(options) - not_options <= set(GRPOConfig.model_fields)
    assert len(options) > 10


def test_every_option_variable_and_default_on_the_serving_page_is_real():
    from inspect import signature

    from typer.main import get_command

    from corral.cli.main import app
    from corral.serve import create_app, security, security_rules
    from corral.serve.security_rules import SecurityRules
    from corral.serve.settings import DEFAULT_SESSIONS

    page = text_of("docs/serving.md")
    commands = get_command(app).commands  # pyright: ignore[reportAttributeAccessIssue]
    options = {
        option
        for name in ("serve", "init", "push", "check")
        for parameter in commands[name].params
        for option in parameter.opts
    }
    assert set(re.findall(r"`(--[a-z-]+)", page)) <= options
    variables = {
        value for name, value in vars(security_rules).items() if name.endswith("_VARIABLE")
    }
    assert set(re.findall(r"CORRAL_[A-Z_]+", page)) == variables
    arguments = set(re.findall(r"^\| `--[^|]*\| `(\w+)` \|", page, re.MULTILINE))
    assert arguments <= set(signature(create_app).parameters)
    assert len(arguments) == 5
    rules = SecurityRules()
    assert f"{rules.max_body_bytes // 2**20} MiB" in page
    assert f"{rules.requests_per_s:,.0f} a second, twice that at once" in page
    assert f"counts as {security.COST_OF_A_WRONG_TOKEN:.0f}." in page
    assert f"at least {security_rules.SHORTEST_TOKEN} characters" in page
    assert f"at a time: {DEFAULT_SESSIONS}, or 1" in page
