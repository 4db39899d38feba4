"""One optimiser step of policy-gradient learning, from samples to updated weights."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from corral.algorithms import BONUS_ENTROPY, Totals
from corral.records import Sample
from corral.training.entropy_control import EntropyControl
from corral.training.expert_balance import ExpertBalance
from corral.training.grpo_config import GRPOConfig
from corral.training.learner import Learner, StepNumbers
from corral.training.reference import Reference, reference_of
from corral.training.step_loss import Before, LossParts, StepLoss, by_row


@dataclass(frozen=True, slots=True)
class PolicyStep:
    """Learns from samples with one loss; holds what stays the same from step to step."""

    parts: LossParts
    control: EntropyControl | None = None
    """What moves the weight of the entropy bonus; None where it stays."""

    @classmethod
    def of(
        cls,
        learner: Learner,
        config: GRPOConfig,
        *,
        has_adapter: bool = False,
        reference: Reference | None = None,
    ) -> "PolicyStep":
        """The step of a learner whose model has not been trained yet.

        Args:
            reference: Where the KL term pulls to; None: the model as it is now.
        """
        reference = reference or reference_of(learner.model, config, has_adapter=has_adapter)
        if reference is not None and config.sync_ref_model:
            learner.beside["reference"] = reference.moving(learner.model)
        control = EntropyControl(config) if config.use_adaptive_entropy else None
        if control is not None:
            learner.beside["entropy_control"] = control.tensors
        balance = ExpertBalance.of(learner.model, config.router_aux_loss_coef)
        parts = LossParts(learner=learner, config=config, reference=reference, balance=balance)
        return cls(parts, control)

    @property
    def learner(self) -> Learner:
        """What is stepped."""
        return self.parts.learner

    @property
    def config(self) -> GRPOConfig:
        """How."""
        return self.parts.config

    @torch.no_grad()
    def score_before(self, samples: Sequence[Sample]) -> Before:
        """What the policy and its reference say of samples now, without a gradient.

        Needed when a generation feeds several optimiser steps: the first changes the policy, and
        may move the reference. With one step both are found in passing.
        """
        before = Before()
        for batch in self.learner.micro_batches(samples):
            rows = [samples[index] for index in batch.indices]
            logprobs = self.learner.score(batch, temperature=self.config.temperature).logprobs
            before.policy.update(by_row(rows, logprobs))
            reference = self.parts.reference_logprobs(batch.to(logprobs.device))
            if reference is not None:
                before.reference.update(by_row(rows, reference))
        return before

    def __call__(
        self, samples: Sequence[Sample], before: Before | None = None
    ) -> tuple[StepNumbers, dict[str, float]]:
        """Learn from this process's samples of a step; returns the step's numbers and metrics.

        Args:
            before: What :meth:`score_before` said of the samples' generation; None where the step
                is its only one.
        """
        made = self._learn(samples, before)
        config, reference = self.config, self.parts.reference
        is_due = config.sync_ref_model and self.learner.step % config.ref_model_sync_steps == 0
        if reference is not None and is_due:
            reference.move(self.learner.model, config.ref_model_mixup_alpha)
        return made

    @torch.no_grad()
    def measure(self, samples: Sequence[Sample]) -> tuple[float, dict[str, float]]:
        """The loss of this process's samples under the present weights, and its metrics.

        Nothing changes; all processes take part. The loss is that of all samples together.
        """
        totals = self._totals(samples)
        if not self._anyone(samples):
            return 0.0, {}
        self.learner.model.eval()
        loss = StepLoss(self.parts, samples, totals, entropy_coef=self._entropy_coef())
        total = torch.stack([loss(batch).detach() for batch in loss.batches]).sum()
        return float(self.learner.summed(total)), loss.metrics() | self._bonus_weight()

    def _learn(
        self, samples: Sequence[Sample], before: Before | None
    ) -> tuple[StepNumbers, dict[str, float]]:
        """Make the optimiser's step.

        Rows that cannot move the weights are left out of the forward pass (their tokens still count
        in what the loss is divided by), so the metrics are those of the rows that were trained. A
        step in which no process has anything to learn passes without touching the weights.
        """
        totals = self._totals(samples)
        useful = samples if self._uses_zero_advantage() else _with_advantage(samples)
        if not self._anyone(useful):
            return self.learner.skip_step(), {}
        loss = StepLoss(
            self.parts, useful, totals, before=before, entropy_coef=self._entropy_coef()
        )
        numbers = self.learner.optimizer_step(loss.batches, loss)
        metrics = loss.metrics()
        if self.control is not None:
            self.control.saw(metrics[BONUS_ENTROPY])
        return numbers, metrics | self._bonus_weight()

    def _entropy_coef(self) -> float:
        return self.config.entropy_coef if self.control is None else self.control.applied()

    def _bonus_weight(self) -> dict[str, float]:
        """What stands in the log of the entropy bonus; nothing where there is none."""
        weight = self.config.entropy_coef if self.control is None else self.control.weight
        return {"entropy_coef": weight} if weight or self.control is not None else {}

    def _totals(self, samples: Sequence[Sample]) -> Totals:
        own = Totals.of_samples(samples)
        counts = torch.tensor(
            [own.tokens, own.rows], dtype=torch.float64, device=self.learner.device
        )
        tokens, rows = self.learner.summed(counts).tolist()
        return Totals(tokens=tokens, rows=rows)

    def _uses_zero_advantage(self) -> bool:
        config = self.config
        has_bonus = config.entropy_coef or config.use_adaptive_entropy
        has_more = has_bonus or self.parts.balance is not None
        return bool(config.beta or has_more or config.top_entropy_quantile < 1)

    def _anyone(self, samples: Sequence[Sample]) -> bool:
        count = torch.tensor(len(samples), device=self.learner.device)
        return int(self.learner.summed(count)) > 0


def _with_advantage(samples: Sequence[Sample]) -> Sequence[Sample]:
    """Rows that have a gradient: every loss is proportional to the advantage but for KL and bonus.

    Their tokens still count in the totals, so the loss is the same as with all rows.
    """
    return [sample for sample in samples if sample.advantage != 0]
