"""GRPO: play groups of episodes, compare them, learn from the difference.

The whole method is :meth:`GRPOTrainer.train`, to be read top to bottom::

    tasks -> play -> score -> advantages -> samples -> optimiser step(s) -> new weights -> ...
"""

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from torch import nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from corral.engines.protocol import Engine
from corral.engines.torch_engine import TorchEngine
from corral.errors import UsageError
from corral.rollout import RolloutFunction
from corral.rollout.blocking import run_blocking
from corral.track import Tracker
from corral.training.arguments import check_arguments, configuration_of, quantized
from corral.training.batching import plan_batches
from corral.training.completion_log import CompletionLog
from corral.training.evaluating import (
    evaluation_rows,
    evaluation_sets,
    evaluation_tasks,
    random_streams_kept,
)
from corral.training.generation import Generation, slices_of, training_rows
from corral.training.generation_numbers import GenerationNumbers
from corral.training.group_play import GroupPlay
from corral.training.grpo_config import GRPOConfig
from corral.training.image_proof import check_images
from corral.training.learner import Learner
from corral.training.loop import Callback
from corral.training.models import chat_format, load_model, load_processing_class, with_adapter
from corral.training.playing import (
    Factory,
    environment_kinds,
    player_of,
    reward_columns,
    task_source,
    tool_schemas,
    tool_sets,
)
from corral.training.policy_evaluation import PolicyEvaluation
from corral.training.policy_step import PolicyStep
from corral.training.processes import make_accelerator
from corral.training.prompt_lengths import check_prompt_lengths
from corral.training.prompt_roles import check_prompt_roles
from corral.training.reference import check_reference
from corral.training.rollout_func import play_with
from corral.training.run_settings import check_evaluation, default_folder, run_settings
from corral.training.script_view import ScriptView
from corral.training.session import alone_in_its_folder
from corral.training.state import TrainerState, TrainOutput
from corral.training.trainer import Trainer
from corral.training.verdicts import Verdicts

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
        train_dataset: Rows to play: a list of dicts, a map-style dataset, or (with ``max_steps``)
            an iterable one. Optional with a single environment and ``max_steps``: the prompt is
            then what ``reset`` returns.
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
        self.args, folder = run_settings(configuration_of(args), default_folder(model, "grpo"))
        tools = check_arguments(tools, environment_factory, rollout_func)
        check_reference(self.args, model, peft_config)
        self.train_dataset, self.eval_dataset = train_dataset, eval_dataset
        joined = make_accelerator(self.args)
        check_evaluation(self.args, eval_dataset, joined.num_processes)
        self.environment_kinds = environment_kinds(environment_factory, tools)
        self._rewards = reward_columns(
            *(reward_funcs, reward_processing_classes),
            *(self.args, self.environment_kinds, joined.device),
        )
        # Before the model is loaded: numbers that do not fit together should not take minutes.
        self.plan = plan_batches(self.args, joined.num_processes)
        self.source = task_source(
            train_dataset, self.environment_kinds, self.args, per_generation=self.plan.tasks
        )
        held_out = [evaluation_rows(data) for data in evaluation_sets(eval_dataset).values()]
        for rows in held_out:
            evaluation_tasks(rows, self.environment_kinds, self.args.seed)
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
        per_epoch = self.source.generations_per_epoch
        self.state = TrainerState(max_steps=self.plan.planned_steps(self.args, per_epoch))
        self.learner.schedule(self.state.max_steps)
        self.engine = engine or TorchEngine(self.model, max_batch=self.args.max_batch)
        if rollout_func is None:
            sets = tool_sets(self.environment_kinds, tools)
            check_prompt_roles(self.source.known_rows, sets, self.chat)
            for rows in held_out:
                check_prompt_roles(rows, sets, self.chat, name="eval_dataset")
            context = self.engine.max_context()
            check_prompt_lengths(self.source.known_rows, sets, self.chat, context)
        check_images(self.source.known_rows, self.model, self.chat, self.engine, self.args)
        self.player = player_of(self.args, self.engine, self.chat, self.environment_kinds, tools)
        self.rollout_func = rollout_func
        self._groups = GroupPlay(
            player=self.player,
            rewards=self._rewards,
            args=self.args,
            state=self.state,
            accelerator=self.accelerator,
            own=None if rollout_func is None else partial(play_with, rollout_func, self),
            show=self._show,
        )
        self._policy_step = PolicyStep.of(
            self.learner, self.args, has_adapter=peft_config is not None
        )
        self._numbers = GenerationNumbers(self.chat, self.args, self.state)
        self._verdicts = Verdicts(self.args)
        self.completion_log = CompletionLog(self.args, folder)
        self._evaluation = PolicyEvaluation(
            groups=self._groups,
            policy_step=self._policy_step,
            numbers=self._numbers,
            log=self.completion_log,
            chat=self.chat,
        )
        self._make_ready(
            model,
            folder,
            self.learner,
            stage=stage,
            tracker=tracker,
            callbacks=callbacks,
            steps_per_epoch=self.state.max_steps
            if per_epoch is None
            else per_epoch * self.plan.steps,
        )

    @alone_in_its_folder
    def train(self, resume_from_checkpoint: bool | str | Path | None = None) -> TrainOutput:
        """Play and learn until ``max_steps``; returns when the last checkpoint is written.

        Args:
            resume_from_checkpoint: A checkpoint folder, or True for the newest one of the run (or a
                fresh start if there is none). The remaining steps are those of an unbroken run.

        Raises:
            EnvironmentFault: No episode of several generations in a row could be played. A single
                such generation makes no update, and its rows are named in a warning.
            UsageError: Several generations in a row had nothing else to train.
        """
        saved = self.session.resume(resume_from_checkpoint)
        if saved is not None:
            self.loop.resume(saved["loop"])
            self._numbers.tokens.has_trained = True
        self._publish_weights()
        self.loop.begin(evaluates_first=self.args.eval_on_start)
        while self.loop.goes_on():
            if self._numbers.tokens.is_starved:
                self._stop_starved()
            with self.loop.keeping_what_is_new():
                # Rounded up: a run that ended within a generation goes on with the next one.
                generation = self._play(-(-self.state.global_step // self.plan.steps))
            self._learn(generation)
            # A generation that feeds several steps is played again after a resume, so checkpoints
            # are made between generations.
            self.loop.between_generations()
        if self._numbers.tokens.has_only_failed:
            self._stop_starved()
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
                rows = evaluation_rows(data)
                tasks = evaluation_tasks(rows, self.environment_kinds, self.args.seed)
                numbers = self._evaluation.measure(tasks, prefix, self.callback_handler.callbacks)
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

    def _play(self, number: int) -> Generation:
        """Play this process's groups, score them, and compare the episodes of each group."""
        generation = self._groups.train(self.source.tasks(number), self.plan.members)
        self._groups.save(generation, self.run_folder, self.session.stage)
        return generation

    def _learn(self, generation: Generation) -> None:
        """Make the optimiser steps that a generation feeds."""
        rows = training_rows(generation, self.chat, self.args)
        before = self._policy_step.score_before(rows) if self.plan.steps > 1 else None
        numbers = self._numbers.of_training(generation)
        self.completion_log.take(generation, self.state.global_step + 1)
        started = time.perf_counter() - generation.seconds
        for part in slices_of(rows, self.plan, self.args.seed, self.state.global_step):
            if not self.loop.goes_on():
                break
            self.loop.step_begins()
            learning = time.perf_counter()
            step, learned = self._policy_step(part, before)
            self.state.global_step = self.learner.step
            self._publish_weights()
            if numbers and self.accelerator.is_main_process:
                self._verdicts.judge(numbers, learned, step, self.state.global_step)
            now = time.perf_counter()
            times = {"step_time": now - started, "time/learn": now - learning}
            self.loop.step_ends({**numbers, **learned, **step.as_metrics(), **times})
            # The numbers of the generation stand beside the first of its steps.
            started, numbers = time.perf_counter(), {}

    def _stop_starved(self) -> NoReturn:
        """End a run that has nothing left to train; all processes do."""
        self.loop.save_last()
        raise self._numbers.tokens.why(self.session.newest_checkpoint())

    def _publish_weights(self) -> None:
        changed = getattr(self.engine, "weights_changed", None)
        if changed is not None:
            changed(self.learner.step)
