"""GRPO: play groups of episodes, compare them, learn from the difference.

The whole method is :meth:`GRPOTrainer.train`, to be read top to bottom::

    tasks -> play -> score -> advantages -> samples -> optimiser step(s) -> new weights -> ...
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from accelerate.utils import gather_object
from torch import nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from corral.engines.protocol import Engine
from corral.engines.torch_engine import TorchEngine
from corral.errors import UsageError
from corral.records import Episode, Sample, Task
from corral.rollout import (
    RolloutFunction,
    Scored,
    reward_functions,
    score,
)
from corral.rollout.blocking import run_blocking
from corral.track import Tracker
from corral.training.arguments import (
    check_factory,
    check_folder,
    configuration_of,
    listed_tools,
    quantized,
)
from corral.training.batching import plan_batches
from corral.training.completion_log import CompletionLog
from corral.training.counters import TokenWatch, count
from corral.training.episode_metrics import episode_metrics, prompt_and_sampled_tokens, token_counts
from corral.training.evaluating import (
    evaluation_sets,
    evaluation_tasks,
    members_of,
    played_in_parts,
    random_streams_kept,
)
from corral.training.exchange import advantages_over_processes, means_over_processes
from corral.training.generation import Generation, slices_of
from corral.training.grpo_config import GRPOConfig
from corral.training.hub import HubUploads
from corral.training.image_proof import check_images
from corral.training.learner import Learner
from corral.training.loop import Callback, Loop
from corral.training.models import (
    chat_format,
    load_model,
    load_processing_class,
    with_adapter,
)
from corral.training.playing import (
    Factory,
    check_reward_source,
    environment_kinds,
    player_of,
    rows_to_play,
    tool_schemas,
)
from corral.training.policy_step import PolicyStep
from corral.training.processes import make_accelerator
from corral.training.reference import Reference
from corral.training.reward_models import with_reward_models
from corral.training.rollout_func import play_with, refuse_what_does_not_fit
from corral.training.run_settings import check_evaluation, run_settings
from corral.training.script_view import ScriptView
from corral.training.session import Session
from corral.training.state import TrainerState, TrainOutput
from corral.training.tasks import TaskSource
from corral.training.together import play_together
from corral.training.trackers import tracker_callbacks
from corral.training.trainer import Trainer
from corral.training.vision import without_mismatches

logger = logging.getLogger(__name__)

Reward = Callable[..., Any] | nn.Module | str | Path


class GRPOTrainer(ScriptView, Trainer):
    """Trains a causal language model by playing in environments.

    Example::

        trainer = GRPOTrainer(
            model="path-or-hub-id",
            environment_factory=GuessNumber,
            train_dataset=[{"prompt": "Find the number.", "secret": 7}],
            args=GRPOConfig(output_dir="runs/guess", max_steps=50),
        )
        trainer.train()

    Args:
        model: A folder, a hub id, or a loaded ``transformers`` model (which is trained in place).
        reward_funcs: One or several: functions (see ``corral.rollout.score`` for what they get),
            or sequence classifiers with one output, as models, folders or hub ids. Optional when
            the environment has ``get_reward``.
        args: The configuration.
        train_dataset: Rows to play: a list of dicts or a map-style dataset. Optional with a single
            environment and ``max_steps``: the prompt is then what ``reset`` returns.
        eval_dataset: Rows to evaluate on, or several such data sets by name.
        processing_class: The tokenizer, or the processor of a model that reads images; None: what
            lies beside the model.
        reward_processing_classes: Tokenizers of reward models, one for each of ``reward_funcs``;
            None: the one beside each model.
        callbacks: Callbacks of transformers, objects or classes; see ``corral.training.loop``.
        optimizers: An optimiser and a schedule instead of the configured ones.
        quantization_config: How transformers quantises the model when it is loaded.
        peft_config: Trains a LoRA adapter instead of the whole model.
        tools: Plain functions the model may call in every task.
        environment_factory: A class (or anything callable without arguments that makes an
            environment), or several by the name that the column ``environment`` holds.
        rollout_func: Plays instead of the built-in loop: ``(prompts, trainer) -> dict`` of token
            ids, see :mod:`corral.rollout.rollout_func`.
        engine: What samples; None: the built-in engine on the very module that is trained.
        tracker: Receives each logged step besides the run folder's ``metrics.jsonl``.
        stage: Name of this training within its run folder.

    Raises:
        UsageError: Something does not fit together; nothing has been trained then.
    """

    METHOD = "GRPO"

    def __init__(
        self,
        model: str | Path | nn.Module,
        reward_funcs: Reward | Sequence[Reward] | None = None,
        args: GRPOConfig | None = None,
        train_dataset: Any = None,
        eval_dataset: Any = None,
        processing_class: Any = None,
        reward_processing_classes: Any = None,
        callbacks: Sequence[Callback] | None = None,
        optimizers: tuple[Optimizer | None, LRScheduler | None] = (None, None),
        quantization_config: Any = None,
        peft_config: Any = None,
        tools: Sequence[Callable[..., Any]] | None = None,
        rollout_func: RolloutFunction | None = None,
        environment_factory: Factory | Mapping[str, Factory] | None = None,
        *,
        engine: Engine | None = None,
        tracker: Tracker | None = None,
        stage: str = "grpo",
    ) -> None:
        self.args, folder = run_settings(configuration_of(args), _default_output(model))
        check_folder(folder)
        tools = listed_tools(tools)
        check_factory(environment_factory)
        self.eval_dataset = eval_dataset
        joined = make_accelerator(self.args)
        check_evaluation(self.args, eval_dataset, joined.num_processes)
        refuse_what_does_not_fit(rollout_func, environment_factory, tools)
        self.environment_kinds = environment_kinds(environment_factory, tools)
        rewards = with_reward_models(
            reward_funcs, reward_processing_classes, self.args, joined.device
        )
        self.reward_funcs = reward_functions(rewards, self.args.reward_weights)
        check_reward_source(self.reward_funcs, self.environment_kinds)
        rows = rows_to_play(train_dataset, self.environment_kinds, self.args)
        for data in evaluation_sets(eval_dataset).values():
            self._evaluation_tasks(data)
        # Before the model is loaded: numbers that do not fit together should not take minutes.
        self.plan = plan_batches(self.args, joined.num_processes)
        self.processing_class = load_processing_class(
            model, processing_class, trust_remote_code=self.args.trust_remote_code
        )
        self.model = with_adapter(
            load_model(model, quantized(self.args.loading_kwargs(), quantization_config, model)),
            peft_config,
            self.args.seed,
        )
        schemas = tool_schemas(self.environment_kinds, tools)
        self.chat = chat_format(
            self.processing_class, self.model, schemas, self.args.chat_template_kwargs
        )
        self.learner = Learner(self.model, self.args, optimizers)
        self.accelerator = self.learner.accelerator
        self.source = TaskSource(
            rows,
            per_generation=self.plan.tasks,
            seed=self.args.seed,
            order_seed=self.args.data_seed,
            is_shuffled=self.args.shuffle_dataset,
        )
        self.state = TrainerState(max_steps=self._planned_steps())
        self.learner.schedule(self.state.max_steps)
        self.engine = engine or TorchEngine(self.model, max_batch=self.args.max_batch)
        check_images(rows, self.model, self.chat, self.engine, self.args)
        self.player = player_of(self.args, self.engine, self.chat, self.environment_kinds, tools)
        self.rollout_func = rollout_func
        has_adapter = peft_config is not None
        reference = Reference.of(self.model, has_adapter=has_adapter) if self.args.beta else None
        self._policy_step = PolicyStep(self.learner, self.args, reference)
        self._tokens = TokenWatch()
        self.session = Session(folder, stage, self.learner, self.state, tracker)
        self.completion_log = CompletionLog(self.args, folder)
        self.hub = HubUploads(self.args, folder.name)
        self.base_model = None if isinstance(model, nn.Module) else str(model)
        self.loop = Loop(
            self.args,
            self.state,
            self.session,
            self.learner,
            self,
            callbacks=[*tracker_callbacks(self.args, folder), *(callbacks or ())],
            processing_class=self.processing_class,
            steps_per_epoch=self.source.generations_per_epoch * self.plan.steps,
        )

    def train(self, resume_from_checkpoint: bool | str | Path | None = None) -> TrainOutput:
        """Play and learn until ``max_steps``; returns when the last checkpoint is written.

        Args:
            resume_from_checkpoint: A checkpoint folder, or True for the newest one of the run (or a
                fresh start if there is none). The remaining steps are those of an unbroken run.
        """
        saved = self.session.resume(resume_from_checkpoint)
        if saved is not None:
            self.loop.resume(saved["loop"])
        self._publish_weights()
        self.loop.begin(evaluates_first=self.args.eval_on_start)
        while self.loop.goes_on():
            if self._tokens.is_starved:
                self.loop.save_last()
                raise self._tokens.why()
            with self.loop.keeping_what_is_new():
                # Rounded up: a run that ended within a generation goes on with the next one.
                generation = self._play(-(-self.state.global_step // self.plan.steps))
            self._learn(generation)
            # A generation that feeds several steps is played again after a resume, so checkpoints
            # are made between generations.
            self.loop.between_generations()
        output = self.loop.end()
        self._push_at_end()
        return output

    def evaluate(
        self,
        eval_dataset: Any = None,
        ignore_keys: object = None,
        metric_key_prefix: str = "eval",
    ) -> dict[str, float]:
        """Play every row of a data set under the present weights, and report the numbers.

        Each row is played ``num_generations_eval`` times, with the same seeds in every evaluation.
        Training goes on afterwards as if nothing had happened; only what an environment itself
        keeps from episode to episode is its own business.

        Args:
            eval_dataset: Rows, data sets by name, or the name of one of the trainer's; None: all of
                the trainer's. With names, ``_<name>`` follows the prefix.
            ignore_keys: Not used; transformers' trainer has it.

        Returns:
            The metrics of training with the prefix before their names.
        """
        if isinstance(eval_dataset, str):
            eval_dataset = self.eval_dataset[eval_dataset]
        sets = evaluation_sets(self.eval_dataset if eval_dataset is None else eval_dataset)
        if not sets:
            raise UsageError("There is nothing to evaluate: pass eval_dataset to the trainer.")
        every: dict[str, float] = {}
        for name, data in sets.items():
            prefix = metric_key_prefix if name is None else f"{metric_key_prefix}_{name}"
            with random_streams_kept():
                numbers = self._evaluate(self._evaluation_tasks(data), prefix)
            self.loop.evaluated(numbers)
            every |= numbers
        return every

    def end(self) -> None:
        """Finish uploads, trackers and environments, and leave the process group."""
        run_blocking(self.player.aclose())
        self.completion_log.close()
        super().end()

    def logged(self) -> None:
        """An entry of training steps was logged: the completions go with it."""
        step, callbacks = self.state.global_step, self.callback_handler.callbacks
        self.completion_log.show_training(step, callbacks)

    # Play

    def _play(self, number: int) -> Generation:
        """Play this process's groups, score them, and compare the episodes of each group."""
        started = time.perf_counter()
        scored = self._play_tasks(self.source.tasks(number), self.plan.members)
        generation = self._compared(scored, time.perf_counter() - started)
        self._save_episodes(generation)
        return generation

    def _play_tasks(self, tasks: Sequence[Task], members: int) -> Scored:
        """This process's share of the tasks, played and scored."""
        mine = tasks[self.accelerator.process_index :: self.accelerator.num_processes]

        own = self.rollout_func

        def play() -> Scored:
            # Not on the event loop: a user's function may well run one of its own.
            given = None if own is None else play_with(own, self, mine, members)

            async def play_and_score() -> Scored:
                played = await self.player.play(mine, members) if given is None else given
                self._show(played)
                return await score(played, self.reward_funcs, trainer_state=self.state)

            return run_blocking(play_and_score())

        return play_together(play, patience_s=self.args.infrastructure_patience_s)

    def _compared(self, scored: Scored, seconds: float) -> Generation:
        advantages = advantages_over_processes(
            scored,
            scale=self.args.scale_rewards,
            aggregation=self.args.multi_objective_aggregation,
        )
        return Generation(scored=scored, advantages=advantages, seconds=seconds)

    def _evaluation_tasks(self, data: Any) -> list[Task]:
        return evaluation_tasks(data, self.environment_kinds, self.args.seed)

    def _evaluate(self, tasks: Sequence[Task], prefix: str) -> dict[str, float]:
        """What came of the tasks, on every process, under names with the prefix."""
        started = time.perf_counter()
        processes = self.accelerator.num_processes
        scored = played_in_parts(tasks, self.args, processes, self._play_tasks)
        generation = self._compared(scored, time.perf_counter() - started)
        rows = self._rows(generation)
        loss, learned = self._policy_step.measure(rows)
        self.completion_log.show_evaluation(
            generation, prefix, self.state.global_step, self.callback_handler.callbacks
        )
        seconds = time.perf_counter() - started
        numbers = {
            "loss": loss,
            **self._episode_numbers(generation, gather_object(generation.episodes())),
            **learned,
            "num_tokens": float(self.state.num_tokens),
            "runtime": seconds,
            "samples_per_second": len(tasks) * members_of(self.args) / seconds,
            "steps_per_second": 1 / seconds,
        }
        return {f"{prefix}_{name}": value for name, value in numbers.items()}

    def _save_episodes(self, generation: Generation) -> None:
        if not (self.args.save_episodes and self.accelerator.is_main_process):
            return
        try:
            self.run_folder.write_episodes(
                self.session.stage,
                self.state.global_step + 1,
                generation.episodes(),
                advantages=generation.advantages.values,
            )
        except Exception:
            # A full disk, or a column that cannot be written, must not cost the training.
            logger.exception("The episodes of step %d are not saved", self.state.global_step + 1)

    # Learn

    def _learn(self, generation: Generation) -> None:
        """Make the optimiser steps that a generation feeds."""
        rows = self._rows(generation)
        old = self._policy_step.old_logprobs(rows) if self.plan.steps > 1 else None
        numbers = self._generation_numbers(generation)
        self.completion_log.take(generation, self.state.global_step + 1)
        started = time.perf_counter() - generation.seconds
        for part in slices_of(rows, self.plan, self.args.seed, self.state.global_step):
            if not self.loop.goes_on():
                break
            self.loop.step_begins()
            learning = time.perf_counter()
            step, learned = self._policy_step(part, old)
            self.state.global_step = self.learner.step
            self._publish_weights()
            now = time.perf_counter()
            times = {"step_time": now - started, "time/learn": now - learning}
            self.loop.step_ends({**numbers, **learned, **step.as_metrics(), **times})
            # The numbers of the generation stand beside the first of its steps.
            started, numbers = time.perf_counter(), {}

    def _episode_numbers(
        self, generation: Generation, episodes: Sequence[Episode]
    ) -> dict[str, float]:
        """What the episodes of all processes came to."""
        is_zero = gather_object(generation.advantages.std_is_zero)
        return {
            **episode_metrics(episodes, self.chat.stop_ids),
            **means_over_processes(generation.scored.metrics),
            "frac_reward_zero_std": fmean(map(float, is_zero)),
        }

    def _rows(self, generation: Generation) -> list[Sample]:
        rows = generation.rows(self.chat.stop_ids, self.args.mask_truncated_completions)
        images = self.chat.images
        return rows if images is None else without_mismatches(rows, images.token_id)

    def _generation_numbers(self, generation: Generation) -> dict[str, float]:
        episodes = gather_object(generation.episodes())
        sampled, every = token_counts(episodes)
        counters = count(
            episodes,
            stop_ids=self.chat.stop_ids,
            masks_truncated=self.args.mask_truncated_completions,
            is_own_template=self.chat.template is not None,
        )
        self._tokens.saw(counters)
        self.state.num_tokens += prompt_and_sampled_tokens(episodes)
        return {
            **self._episode_numbers(generation, episodes),
            **counters.as_metrics(),
            "num_tokens": float(self.state.num_tokens),
            "tokens_per_second": sampled / generation.seconds,
            "tokens/sampled": float(sampled),
            "tokens/all": float(every),
            "time/play": generation.seconds,
        }

    def _publish_weights(self) -> None:
        changed = getattr(self.engine, "weights_changed", None)
        if changed is not None:
            changed(self.learner.step)

    # Set-up

    def _planned_steps(self) -> int:
        if self.args.max_steps > 0:
            return self.args.max_steps
        generations = self.source.generations_per_epoch * self.args.num_train_epochs
        return max(1, round(generations * self.plan.steps))


def _default_output(model: str | Path | nn.Module) -> str:
    name = model if isinstance(model, str | Path) else getattr(model, "name_or_path", "") or "model"
    return f"runs/{Path(name).name}-grpo"
