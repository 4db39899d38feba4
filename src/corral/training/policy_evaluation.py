"""Measuring a policy on tasks: played, scored, compared, and put to the loss that trains it."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from transformers import TrainerCallback

from corral.chat import ChatFormat
from corral.records import Task
from corral.training.completion_log import CompletionLog
from corral.training.evaluating import members_of
from corral.training.generation import training_rows
from corral.training.generation_numbers import GenerationNumbers
from corral.training.group_play import GroupPlay
from corral.training.policy_step import PolicyStep


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyEvaluation:
    """Evaluates with what trains; nothing of it is changed."""

    groups: GroupPlay
    policy_step: PolicyStep
    numbers: GenerationNumbers
    log: CompletionLog
    chat: ChatFormat

    def measure(
        self, tasks: Sequence[Task], prefix: str, callbacks: Sequence[TrainerCallback]
    ) -> dict[str, float]:
        """What came of the tasks, on every process, under names with the prefix."""
        started = time.perf_counter()
        args, state = self.groups.args, self.groups.state
        generation = self.groups.evaluate(tasks)
        loss, learned = self.policy_step.measure(training_rows(generation, self.chat, args))
        self.log.show_evaluation(generation, prefix, state.global_step, callbacks)
        seconds = time.perf_counter() - started
        numbers = {
            "loss": loss,
            **self.numbers.of_evaluation(generation),
            **learned,
            "num_tokens": float(state.num_tokens),
            "runtime": seconds,
            "samples_per_second": len(tasks) * members_of(args) / seconds,
            "steps_per_second": 1 / seconds,
        }
        return {f"{prefix}_{name}": value for name, value in numbers.items()}
