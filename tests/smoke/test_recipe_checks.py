"""A recipe that cannot be run is refused before anything is touched."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from support.sums import GAME

pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning:torch.*"),
    pytest.mark.timeout(240),
]

COUNTING = """
{%- for tool in tools or [] -%}{{ tool | tojson }}{%- endfor -%}
{%- for message in messages -%}
{{- '<|im_start|>' + message.role + ' ' + (messages | length | string) + '\\n' -}}
{{- (message.content or '') -}}
{%- for call in message.tool_calls or [] -%}
{{- '<tool_call>{"name": "' + call.function.name + '", "arguments": ' -}}
{{- call.function.arguments | tojson + '}</tool_call>' -}}
{%- endfor -%}
{{- '<|im_end|>\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\\n' }}{%- endif -%}
"""
"""Says how many messages there are, so that none can be appended."""

Corral = Callable[..., Result]


@pytest.fixture
def finished_run(tmp_path: Path) -> Path:
    """A folder that looks as if the recipe had been run."""
    folder = tmp_path / "runs" / "sums"
    folder.mkdir(parents=True)
    for name in ("config.toml", "report.html"):
        (folder / name).write_text("")
    return folder


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (["environment=game.py:Sums"], "'Sums' does not exist in"),
        (["environment=sumz"], "Unknown world 'sumz'"),
        (
            ["environment=none", "sft.games=3"],
            "sft has neither a dataset nor an environment",
        ),
        (["environment=none", "grpo.rewards=[]"], "grpo without an environment needs a dataset"),
        (["grpo.rewards=['rewards.py:reachd']"], "grpo.rewards: 'reachd' does not exist in"),
        (["grpo.rewards=['rewards.py:reachd']"], "rewards.py:reached"),
        (["grpo.rewards=['reached']"], "'reached' names no function. Write path.py:function"),
        (["grpo.rewards=[]", "grpo.train.reward_weights=none"], "No reward source provided"),
        (["grpo.dataset=gaols.jsonl"], "grpo.dataset='gaols.jsonl' does not exist"),
        (["grpo.dataset=nope"], "grpo.dataset='nope' is neither a file or folder here nor"),
        (
            ["grpo.dataset.path=goals.jsonl", "grpo.dataset.split=test"],
            "is a file, which has no split",
        ),
        (["grpo.dataset=empty.jsonl"], "grpo.dataset='{here}/empty.jsonl' has no rows"),
        (["grpo.dataset=talks.jsonl"], "grpo.dataset[0]: Sum.reset needs 'start'"),
        (["evaluation.dataset=nope.jsonl"], "evaluation.dataset='nope.jsonl' does not exist"),
        (["evaluation.dataset=talks.jsonl"], "evaluation.dataset[0]: Sum.reset needs 'start'"),
        (["model=./tiney"], "model='./tiney' does not exist"),
        (["model=nope"], "model='nope' is neither a folder with a model nor a hub id"),
        (
            ["model.kind=path", "model.path=tiny", "model.chat_template=none.jinja"],
            "model.chat_template='none.jinja' does not exist",
        ),
        (
            ["model.kind=path", "model.path=tiny", "model.chat_template=counting.jinja"],
            "of the chat template is not how an assistant turn begins",
        ),
        (
            ["model.kind=path", "model.path=tiny", "model.chat_template=broken.jinja"],
            "model.chat_template='{here}/broken.jinja': The chat template failed in line 3 on",
        ),
        (
            ["grpo.train.lr_scheduler_type=cosine_with_min_lr", "grpo.train.learning_rate=0.0"],
            "lr_scheduler_type='cosine_with_min_lr' with lr_scheduler_kwargs={{}}",
        ),
        (["grpo.train.trained_blocks=9"], "trained_blocks=9: the model has"),
        (
            ["sft.dataset=talks.jsonl", "sft.train.eos_token=<end>"],
            "eos_token='<end>' is no token of the tokenizer's vocabulary",
        ),
        (["output=rewards.py/run"], "rewards.py is a file. Give a folder"),
        (
            ["grpo.dataset=none", "environment=bad_tasks.py:Sum"],
            "tasks of {here}/bad_tasks.py:Sum[0]: Sum.reset needs 'start'",
        ),
        (
            ["grpo.dataset=silent.jsonl"],
            "grpo.dataset[0]: prompt[1] of role 'user' has no `content`",
        ),
        (["sft.policy=expert"], "has no policy 'expert'. It has: random."),
        (["sft.dataset=goals.jsonl"], "sft.dataset[0]: the columns ['goal', 'prompt', 'start']"),
        (
            ["sft.dataset=talks.jsonl", "sft.train.completion_only_loss=true"],
            "sft.dataset[0]: completion_only_loss=True needs 'prompt' and 'completion'",
        ),
        (
            ["sft.dataset=talks.jsonl", "sft.eval_dataset=goals.jsonl"],
            "sft.eval_dataset[0]: the columns",
        ),
        (
            ["sft.dataset=talks.jsonl", "sft.train.eval_strategy=epoch"],
            "eval_strategy='epoch' needs an eval_dataset",
        ),
        (["grpo.train.num_generations=3"], "which num_generations=3 does not divide"),
        (["grpo.train.eval_strategy=steps"], "eval_strategy='steps' needs an eval_dataset"),
        (["grpo.train.sync_ref_model=true"], "sync_ref_model=True with beta=0.0"),
        (["grpo.train.reward_weights=[1]"], "reward_weights"),
        (
            ["model.kind=scratch", "model.hidden_size=36", "model.heads=4"],
            "hidden_size=36 is not a multiple of twice heads=4",
        ),
        (
            ["model={kind = 'gguf-package', package = 'json', file = 'x.gguf'}"],
            "The package 'json' has no file 'x.gguf'",
        ),
        (["evaluation.players=['random']"], "get its own reward: leave them out"),
        (
            ["evaluation.players=['randm']", "grpo.rewards=[]", "environment=echo"],
            "echo has no policy 'randm'. It has: random, solver",
        ),
        (["output=."], "The run folder '.' is where you are, or above it"),
    ],
)
def test_a_mistake_in_a_recipe_leaves_earlier_runs_alone(
    corral: Corral, tmp_path: Path, finished_run: Path, changes: list[str], words: str
) -> None:
    (tmp_path / "empty.jsonl").write_text("")
    (tmp_path / "counting.jinja").write_text(COUNTING)
    (tmp_path / "broken.jinja").write_text("a\nb\n{{ messages.first.second }}\n")
    (tmp_path / "bad_tasks.py").write_text(
        GAME + "\n\ndef tasks(seed, count):\n    return [{'prompt': 'Add.'}] * count\n"
    )
    prompt = [{"role": "system", "content": "Add."}, {"role": "user"}]
    silent = {"prompt": prompt, "start": 1, "goal": 2}
    (tmp_path / "silent.jsonl").write_text(json.dumps(silent) + "\n")
    options = [part for change in changes for part in ("--set", change)]
    ran = corral("train", "sums.yaml", *options, code=2)
    assert words.format(here=tmp_path) in ran.stderr.replace("\n", " ")
    assert sorted(path.name for path in finished_run.iterdir()) == ["config.toml", "report.html"]
    assert [path.name for path in finished_run.parent.iterdir()] == ["sums"]


def test_a_template_of_one_s_own_goes_with_the_model(
    corral: Corral, tmp_path: Path, model_folder: Path
) -> None:
    template = (model_folder / "chat_template.jinja").read_text().replace("TOOLS", "Tools:")
    (tmp_path / "chat.jinja").write_text(template)
    options = ["model.kind=path", "model.path=tiny", "model.chat_template=chat.jinja"]
    corral("train", "sums.yaml", *[part for one in options for part in ("--set", one)])
    run = tmp_path / "runs" / "sums"
    for stage in ("base", "grpo"):
        assert (run / "models" / stage / "chat_template.jinja").read_text() == template
    assert f'chat_template = "{tmp_path}/chat.jinja"' in (run / "config.toml").read_text()


def test_a_tracker_that_is_not_installed_is_named_at_once(
    corral: Corral, finished_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("corral.training.trackers.find_spec", lambda name: None)
    ran = corral("train", "sums.yaml", "--set", "grpo.train.report_to=wandb", code=1)
    assert "report_to='wandb' needs a package that is not installed" in ran.stderr
    assert [path.name for path in finished_run.parent.iterdir()] == ["sums"]


def test_sft_on_rows_of_another_shape_makes_no_folder(corral: Corral, tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text(json.dumps({"question": "2+2?", "answer": "4"}) + "\n")
    ran = corral("sft", "tiny", "rows.jsonl", code=2)
    assert "sft.dataset[0]: the columns ['answer', 'question'] can't be learned from" in ran.stderr
    assert not (tmp_path / "runs").exists()


def test_an_earlier_run_is_moved_aside_with_a_word(
    corral: Corral, tmp_path: Path, finished_run: Path
) -> None:
    ran = corral("sft", "tiny", "talks.jsonl", "--set", "max_steps=1", "--output", "runs/sums")
    assert "runs/sums held a finished run, which is now runs/sums.1.\n" in ran.stderr
    assert (tmp_path / "runs" / "sums.1" / "report.html").read_text() == ""


def test_who_interrupts_before_there_is_a_run_is_not_sent_back_to_it(
    corral: Corral, finished_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("corral.recipes.run.check_recipe", interrupted)
    assert corral("train", "sums.yaml", code=130).stderr == "Error: Interrupted.\n"
    assert [path.name for path in finished_run.parent.iterdir()] == ["sums"]


def test_other_tools_than_the_environment_s_are_told(
    corral: Corral, caplog: pytest.LogCaptureFixture
) -> None:
    changes = ["sft.dataset=talks.jsonl", "grpo.train.num_generations=3"]  # the latter ends it
    corral("train", "sums.yaml", *[part for one in changes for part in ("--set", one)], code=2)
    assert "sft.dataset: 6 of 6 conversations list other tools" in caplog.text
    assert "(they list none)" in caplog.text


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("environment=sumz", "Unknown world 'sumz'"),
        ("grpo.train.num_generations=3", "which num_generations=3 does not divide"),
        ("grpo.train.trained_blocks=9", "trained_blocks=9: the model has"),
        ("grpo.dataset=talks.jsonl", "grpo.dataset[0]: Sum.reset needs 'start'"),
        ("output=.", "The run folder '.' is where you are, or above it"),
    ],
)
def test_a_dry_run_is_refused_what_a_run_is(corral: Corral, change: str, words: str) -> None:
    ran = corral("train", "sums.yaml", "--set", change, "--dry-run", code=2)
    assert words in ran.stderr
    assert change.partition("=")[2] in ran.stdout  # the settings are there all the same


def test_a_dry_run_of_what_fits_writes_nothing(corral: Corral, finished_run: Path) -> None:
    ran = corral("train", "sums.yaml", "--dry-run")
    assert 'environment = "game.py:Sum"' in ran.stdout
    assert [path.name for path in finished_run.parent.iterdir()] == ["sums"]


def test_an_evaluation_on_rows_of_data_plays_and_checks_them(
    corral: Corral, tmp_path: Path
) -> None:
    options = ["tiny", "--world", "game.py:Sum", "--max-tokens", "4", "--json"]
    rows = [{"prompt": "Add.", "start": n} for n in range(2)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    ran = corral("eval", *options, "--dataset", "rows.jsonl")
    assert json.loads(ran.stdout)["games"] == 2
    (tmp_path / "bad.jsonl").write_text(json.dumps(rows[0]) + '\n{"prompt": null, "start": 1}\n')
    ran = corral("eval", *options, "--dataset", "bad.jsonl", code=2)
    assert "--dataset[1]: prompt is None. Give text or messages" in ran.stderr
    assert not ran.stdout
