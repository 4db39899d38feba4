from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, SecretStr, model_validator

from corral.config import Flag, load
from corral.errors import UsageError


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Model(Strict):
    path: str = "tiny"
    revision: str | None = "main"
    template_kwargs: dict[str, Any] = {}


class Grpo(Strict):
    learning_rate: float = Field(default=1e-6, gt=0)
    max_steps: int = 10
    max_turns: int | None = 12
    scale: Literal["group", "batch", "none"] = "group"
    weights: list[float] = []
    warmup: Model | None = None


class Stage(Strict):
    name: str
    steps: int = 1


class Recipe(Strict):
    seed: int = 0
    model: Model = Model()
    grpo: Grpo = Grpo()
    stages: list[Stage] = []
    api_key: SecretStr | None = None


def test_later_sources_win_and_every_origin_is_known():
    resolved = load(
        "seed = 1\n[grpo]\nmax_steps = 20\nmax_turns = 5\n",
        ["grpo.max_turns=7", "model.path=other"],
        Recipe,
        flags=[Flag(name="--seed", key="seed", value=3)],
    )
    assert resolved.value.seed == 3
    assert resolved.value.grpo.max_steps == 20
    assert resolved.value.grpo.max_turns == 7
    assert resolved.value.model.path == "other"
    assert resolved.origins["seed"] == "--seed"
    assert resolved.origins["grpo.max_steps"] == "recipe"
    assert resolved.origins["grpo.max_turns"] == "--set"
    assert resolved.origins["model.path"] == "--set"
    assert resolved.origins["grpo.learning_rate"] == "default"


def test_set_wins_over_a_flag():
    flag = Flag(name="--seed", key="seed", value=3)
    assert load("", ["seed=4"], Recipe, flags=[flag]).value.seed == 4


def test_a_file_is_read_and_plain_data_is_not_changed(tmp_path: Path):
    path = tmp_path / "rezept-ü.toml"
    path.write_text('[model]\npath = "größe"\n', encoding="utf-8")
    assert load(path, [], Recipe).value.model.path == "größe"
    assert load(str(path), [], Recipe).value.model.path == "größe"
    data = {"grpo": {"max_steps": 3}}
    load(data, ["grpo.max_steps=4"], Recipe)
    assert data == {"grpo": {"max_steps": 3}}


@pytest.mark.report("P199")
@pytest.mark.parametrize(
    ("override", "section", "name", "expected"),
    [
        ("grpo.max_turns=none", "grpo", "max_turns", None),
        ("grpo.max_turns=None", "grpo", "max_turns", None),
        ("grpo.max_turns=null", "grpo", "max_turns", None),
        ("grpo.scale=none", "grpo", "scale", "none"),
        ("model.revision=none", "model", "revision", None),
        ("model.revision='none'", "model", "revision", "none"),
        ("model.path=none", "model", "path", "none"),
        ("model.path=2024", "model", "path", "2024"),
        ("model.path=true", "model", "path", "true"),
        ("model.path=a=b", "model", "path", "a=b"),
        ("model.path=", "model", "path", ""),
        ("model.path=[x]", "model", "path", "[x]"),
        ("grpo.learning_rate=2e-5", "grpo", "learning_rate", 2e-5),
        ("grpo.learning_rate=.5", "grpo", "learning_rate", 0.5),
        ("grpo.weights=[1, 0.1]", "grpo", "weights", [1.0, 0.1]),
        ("grpo.warmup={path = 'w'}", "grpo", "warmup", Model(path="w")),
        ("grpo.warmup.path=w", "grpo", "warmup", Model(path="w")),
        (" grpo.max_steps = 5 ", "grpo", "max_steps", 5),
        ("model.template_kwargs.enable_thinking=False", "model", "template_kwargs",
         {"enable_thinking": False}),
        ("model.template_kwargs.x=none", "model", "template_kwargs", {"x": None}),
    ],
)  # fmt: skip
def test_an_override_means_what_the_setting_accepts(override, section, name, expected):
    value = getattr(getattr(load("", [override], Recipe).value, section), name)
    assert value == expected
    assert type(value) is type(expected)


@pytest.mark.report("P199")
def test_none_in_a_file():
    text = '[grpo]\nmax_turns = "none"\nscale = "none"\n[model]\nrevision = { none = true }\n'
    value = load(text, [], Recipe).value
    assert value.grpo.max_turns is None
    assert value.grpo.scale == "none"
    assert value.model.revision is None


def test_elements_of_lists_of_tables_can_be_set():
    text = '[[stages]]\nname = "sft"\n[[stages]]\nname = "grpo"\n'
    resolved = load(text, ["stages.1.steps=5"], Recipe)
    assert resolved.value.stages == [Stage(name="sft"), Stage(name="grpo", steps=5)]
    assert resolved.origins["stages.1.steps"] == "--set"
    assert resolved.origins["stages.1.name"] == "recipe"
    assert resolved.origins["stages.0.steps"] == "default"


def test_setting_a_whole_section_replaces_it():
    resolved = load("[grpo]\nmax_steps = 3\n", ["grpo={ max_turns = 2 }"], Recipe)
    assert (resolved.value.grpo.max_steps, resolved.value.grpo.max_turns) == (10, 2)
    assert resolved.origins["grpo.max_turns"] == "--set"
    assert resolved.origins["grpo.max_steps"] == "default"


@pytest.mark.parametrize(
    ("text", "overrides", "message"),
    [
        ("[grpo]\nmax_step = 3", [], r"recipe: there is no setting 'grpo.max_step'. Did you mean "
                                    r"grpo.max_steps"),
        ("", ["grpo.lerning_rate=1"], r"--set: .*'grpo.lerning_rate'. Did you mean grpo.learning"),
        ("max_turns = 3", [], r"'max_turns'. Did you mean grpo.max_turns\?"),
        ("", ["gpro.max_turns=3"], r"'gpro'. Did you mean grpo"),
        ("[model]\nxyzzy = 1", [], r"\[model\] has: path, revision, template_kwargs"),
        ("xyzzy = 1", [], r"There are: seed, model, grpo"),
        ("[[stages]]\nname = 'a'\nstep = 2", [], r"'stages.0.step'. Did you mean stages.0.steps"),
        ("", ["stages.0.steps=2"], r"stages has no elements yet.*--set stages="),
        ("[[stages]]\nname = 'a'", ["stages.3.steps=2"], r"stages is a list of 1; '3' is none"),
        ("", ["grpo"], r"--set 'grpo': write it as section.key=value"),
        ("", ["=3"], r"write it as section.key=value"),
        ("", ["grpo..x=3"], r"write it as section.key=value"),
        ("", ["grpo.max_steps=many"], r"grpo.max_steps = 'many' \(--set\): Input should be"),
        ("[grpo]\nlearning_rate = 0", [], r"grpo.learning_rate = 0 \(recipe\): .*greater than 0"),
        ("[grpo]\nscale = 'x'", [], r"grpo.scale = 'x' \(recipe\): .*'group', 'batch' or 'none'"),
        ("[[stages]]\nsteps = 1", [], r"stages.0.name is not set and has no default"),
        ("seed = \n", [], r"not valid TOML: .*line 1"),
    ],
)  # fmt: skip
def test_wrong_use_names_the_value_and_the_remedy(text, overrides, message):
    with pytest.raises(UsageError, match=message):
        load(text or {}, overrides, Recipe)


def test_a_missing_file_is_named(tmp_path: Path):
    with pytest.raises(UsageError, match=r"Cannot read .*nothing.toml: No such file"):
        load(tmp_path / "nothing.toml", [], Recipe)


def test_all_problems_are_told_at_once():
    with pytest.raises(UsageError) as caught:
        load("seed = 'x'\n[grpo]\nmax_steps = 'y'\n", [], Recipe)
    assert "seed = 'x'" in str(caught.value)
    assert "grpo.max_steps = 'y'" in str(caught.value)


def test_a_secret_is_not_in_the_error():
    with pytest.raises(UsageError, match=r"api_key = \*+") as caught:
        load({"api_key": 12345}, [], Recipe)
    assert "12345" not in str(caught.value)


def test_a_check_over_several_settings_reads_as_its_sentence():
    class Pair(Strict):
        low: int = 0
        high: int = 1

        @model_validator(mode="after")
        def _order(self):
            if self.low > self.high:
                raise ValueError("low must not be above high.")
            return self

    with pytest.raises(UsageError, match=r"^low must not be above high\.$"):
        load("low = 2", [], Pair)


class Scratch(BaseModel):
    model_config = ConfigDict(extra="forbid")
    kind: Literal["scratch"]
    layers: int = Field(default=1, ge=1)


class Found(BaseModel):
    model_config = ConfigDict(extra="forbid")
    kind: Literal["path"]
    path: str
    template: str = ""


class Modelled(BaseModel):
    model: Scratch | Found = Field(discriminator="kind")


@pytest.mark.parametrize(
    ("section", "message"),
    [
        (
            {"kind": "scratch", "template": "x"},
            r"^model.template = 'x' \(recipe\): \[model\] of the kind 'scratch' has no template: ",
        ),
        (
            {"kind": "path", "path": "here", "layers": 3},
            r"^model.layers = 3 \(recipe\): \[model\] of the kind 'path' has no layers: leave it",
        ),
        ({"kind": "path", "path": 3}, r"^model.path = 3 \(recipe\): Input should be a valid str"),
        ({"kind": "scratch", "layers": 0}, r"^model.layers = 0 \(recipe\): Input should be gr"),
        ({"kind": "path"}, r"^model.path is not set and has no default"),
    ],
)
def test_settings_of_a_section_of_several_kinds_have_the_names_they_are_written_by(
    section: dict[str, Any], message: str
):
    with pytest.raises(UsageError, match=message):
        load({"model": section}, [], Modelled)
