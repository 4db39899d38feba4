"""What a recipe names and sets is looked at before its run touches the disk.

A trainer refuses what does not fit together when it is made. In a recipe that is after the model
was built and games were played, minutes late, and after the folder of an earlier run was moved out
of the way; so the same is looked at here first.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from corral.chat import ChatFormat
from corral.env import close
from corral.errors import TemplateError, UsageError, require
from corral.recipes.models import FoundModel, check_model
from corral.recipes.named import Rows, Worlds, factory_of, find_rewards, rows_at
from corral.recipes.recipe import (
    AnyModel,
    DataSection,
    PathModel,
    Recipe,
    ReinforcementSection,
    ScratchModel,
    WarmupSection,
)
from corral.recipes.tool_rows import other_tools
from corral.rollout.blocking import run_blocking
from corral.training import SFTConfig
from corral.training.batching import plan_batches
from corral.training.models import check_trained_blocks
from corral.training.picture_table import PictureTable
from corral.training.playing import (
    environment_kinds,
    reward_columns,
    tool_schemas,
    tool_sets,
)
from corral.training.processes import make_accelerator
from corral.training.prompt_roles import check_prompt_roles
from corral.training.raw_rows import RowShape, read_row
from corral.training.reference import check_reference
from corral.training.row_checks import Kinds, check_rows
from corral.training.run_settings import check_evaluation
from corral.training.schedules import rate_schedule
from corral.training.sft import check_options
from corral.training.special_tokens import prepared
from corral.training.token_rows import check_shape
from corral.training.trackers import check_trackers
from corral.training.trainer_config import TrainerConfig
from corral.worlds.world import World

logger = logging.getLogger(__name__)


def check_recipe(recipe: Recipe, worlds: Worlds) -> None:
    """Check what the stages of a recipe will ask for: model, data, settings.

    Rows are read here and once more where they are used: a stage that was finished before a resume
    does not need its own again.

    Args:
        worlds: The recipe's environments. One of each is made, and closed again.

    Raises:
        UsageError: Something is not there, or does not fit together.
        MissingExtraError: A package that is needed is not installed.
    """
    with _examined(worlds) as kinds:
        found = check_model(recipe.model)
        for section in filter(None, (recipe.sft, recipe.grpo)):
            _check_training(section.train, recipe.model, found)
        chat = _chat(recipe, kinds, found)
        if recipe.sft is not None:
            _check_warm_up(recipe.sft, worlds, kinds, found)
        if recipe.grpo is not None:
            _check_reinforcement(recipe.grpo, worlds, kinds, chat)
        if kinds and recipe.evaluation.dataset is not None:
            rows = _rows(recipe.evaluation.dataset, "evaluation.dataset")
            _check_played(rows, kinds, chat, name="evaluation.dataset")
        elif None in worlds and (recipe.grpo is None or recipe.grpo.dataset is None):
            _check_games(worlds[None], recipe.evaluation.games)


def check_played(rows: Rows, worlds: Worlds, name: str) -> None:
    """Check that rows can be played in these worlds, as those of a training are checked.

    Raises:
        UsageError: One cannot, which is named by its number.
    """
    with _examined(worlds) as kinds:
        check_rows(rows, kinds, name=name)


@contextmanager
def _examined(worlds: Worlds) -> Iterator[Kinds]:
    """What the worlds show; of each an environment is made, and closed again."""
    kinds = environment_kinds(factory_of(worlds), ())
    try:
        yield kinds
    finally:
        for kind in kinds.values():
            home = kind.construct()  # the one that was made to look at it
            run_blocking(close(home.instance, executor=home.thread))
            home.leave()


def _chat(recipe: Recipe, kinds: Kinds, found: FoundModel | None) -> ChatFormat | None:
    """How conversations with the environments' tools are written; None if that is still to come.

    Raises:
        TemplateError: The model's template cannot write them.
    """
    if found is None or (recipe.grpo is None and not kinds):
        return None
    schemas = tool_schemas(kinds, ())
    options = recipe.grpo.train.chat_template_kwargs if recipe.grpo is not None else {}
    try:
        return ChatFormat.for_tokenizer(
            found.processing_class,
            template_kwargs=options,
            tools=schemas,
            extra_stop_ids=sorted(found.stop_ids),
            needs_tools=bool(schemas),
        )
    except TemplateError as error:
        own = recipe.model.chat_template if isinstance(recipe.model, PathModel) else None
        raise TemplateError(
            f"model.chat_template={own!r}: {error}" if own else str(error)
        ) from error


def _check_training(args: TrainerConfig, model: AnyModel, found: FoundModel | None) -> None:
    """What both ways to train ask for."""
    make_accelerator(args)
    check_trackers(args)
    rate_schedule(args, max(args.max_steps, 1))
    blocks = model.layers if isinstance(model, ScratchModel) else found and found.blocks
    if args.trained_blocks is not None and blocks is not None:
        check_trained_blocks(args.trained_blocks, blocks, "the model")


def _check_warm_up(
    section: WarmupSection, worlds: Worlds, kinds: Kinds, found: FoundModel | None
) -> None:
    args = section.train
    check_options(args, section.eval_dataset, None)
    if found is not None:
        prepared(found.processing_class, args)
    if section.dataset is None:
        worlds[None].policy(section.policy)  # the recipe checks that there is one world
    rows = _shapes(section.dataset, "sft.dataset", args)
    _shapes(section.eval_dataset, "sft.eval_dataset", args)
    other = other_tools(rows, [kind.tools.schemas for kind in kinds.values()])
    if other is not None:
        logger.warning("sft.dataset: %s", other)


def _shapes(data: DataSection | None, name: str, args: SFTConfig) -> list[RowShape]:
    """Rows to learn from, as they are read."""
    shapes: list[RowShape] = []
    rows = _rows(data, name)
    if isinstance(rows, PictureTable):
        rows = rows[:1]  # to read them all is to open all their pictures
    for index, row in enumerate(rows):
        try:
            shapes.append(read_row(row, args.dataset_text_field))
            check_shape(shapes[-1], args)
        except UsageError as error:
            raise UsageError(f"{name}[{index}]: {error}") from None
    return shapes


def _check_reinforcement(
    section: ReinforcementSection, worlds: Worlds, kinds: Kinds, chat: ChatFormat | None
) -> None:
    args = section.train
    processes = make_accelerator(args).num_processes
    check_reference(args, None, None)
    check_evaluation(args, None, processes)
    plan_batches(args, processes)
    reward_columns(find_rewards(section.rewards) or None, None, args, kinds, "cpu")
    if args.log_completions:
        require("pyarrow", extra="data")
    if section.dataset is not None:
        _check_played(_rows(section.dataset, "grpo.dataset"), kinds, chat, name="grpo.dataset")
    else:  # the recipe checks that there is one world; its rows are all made alike
        name = f"tasks of {worlds[None].name}"
        _check_played(worlds[None].tasks(0, 1), kinds, chat, name=name)


def _check_games(world: World, games: int) -> None:
    """A world may have fewer different ones than are asked for."""
    try:
        world.evaluation_tasks(games)
    except UsageError as error:
        raise UsageError(f"evaluation.games={games} in {world.name}: {error}") from None


def _check_played(rows: Rows, kinds: Kinds, chat: ChatFormat | None, *, name: str) -> None:
    """Rows that are played fit the environments, and the template where it is known."""
    check_rows(rows, kinds, name=name)
    if chat is not None:
        check_prompt_roles(rows, tool_sets(kinds, ()), chat, name=name)


def _rows(data: DataSection | None, name: str) -> Rows:
    """The rows of a section; none where there is no section."""
    return () if data is None else rows_at(data, name)
