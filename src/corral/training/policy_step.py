"""One optimiser step of policy-gradient learning, from samples to updated weights."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from accelerate.utils import gather_object
from torch import Tensor

from corral.algorithms import (
    ImportanceRatio,
    LossOptions,
    Metric,
    MicroBatch,
    TokenBatch,
    Totals,
    combine_metrics,
    correction_metrics,
    entropy_threshold,
    finish_metrics,
    importance_ratio,
    policy_loss,
)
from corral.records import Sample
from corral.training.grpo_config import GRPOConfig
from corral.training.learner import Learner, StepNumbers
from corral.training.placeholder import PLACEHOLDER
from corral.training.reference import Reference


def loss_options(config: GRPOConfig) -> LossOptions:
    """The part of the configuration that shapes the loss."""
    names = LossOptions.__dataclass_fields__
    return LossOptions(**{name: getattr(config, name) for name in names})


@dataclass(frozen=True, slots=True)
class PolicyStep:
    """Learns from samples with one loss; holds what stays the same from step to step."""

    learner: Learner
    config: GRPOConfig
    reference: Reference | None = None
    """Where the KL term pulls to; None when beta is 0."""

    def old_logprobs(self, samples: Sequence[Sample]) -> dict[int, Tensor]:
        """By ``id(sample)``: logprobs [trained tokens] under the current weights, no gradient.

        Needed when a generation feeds several optimiser steps; with one step they equal the
        logprobs of the training forward itself.
        """
        found: dict[int, Tensor] = {}
        with torch.no_grad():
            for batch in self.learner.micro_batches(samples):
                logprobs, _ = self.learner.score(batch, temperature=self.config.temperature)
                counts = [samples[index].trained_tokens() for index in batch.indices]
                parts = logprobs.split(counts)
                places = zip(batch.indices, parts, strict=True)
                found |= {id(samples[index]): part for index, part in places}
        return found

    def __call__(
        self, samples: Sequence[Sample], old: Mapping[int, Tensor] | None = None
    ) -> tuple[StepNumbers, dict[str, float]]:
        """Learn from this process's samples of a step; returns the step's numbers and metrics.

        Rows that cannot move the weights are left out of the forward pass (their tokens still count
        in what the loss is divided by), so the metrics are those of the rows that were trained. A
        step in which no process has anything to learn passes without touching the weights.
        """
        totals = self._totals(samples)
        useful = samples if self._uses_zero_advantage() else _with_advantage(samples)
        if not self._anyone(useful):
            return self.learner.skip_step(), {}
        # Every process must take part in the backward pass, if need be with a row of no effect.
        useful = useful or [PLACEHOLDER]
        batches = self.learner.micro_batches(useful)
        parts: list[Mapping[str, Metric]] = []
        loss_of = self._loss(useful, batches, old, totals, parts)
        numbers = self.learner.optimizer_step(batches, loss_of)
        return numbers, self._finished(parts)

    @torch.no_grad()
    def measure(self, samples: Sequence[Sample]) -> tuple[float, dict[str, float]]:
        """The loss of this process's samples under the present weights, and its metrics.

        Nothing changes; all processes take part. The loss is that of all samples together.
        """
        totals = self._totals(samples)
        if not self._anyone(samples):
            return 0.0, {}
        useful = samples or [PLACEHOLDER]
        batches = self.learner.micro_batches(useful)
        parts: list[Mapping[str, Metric]] = []
        self.learner.model.eval()
        loss_of = self._loss(useful, batches, None, totals, parts)
        loss = torch.stack([loss_of(batch).detach() for batch in batches]).sum()
        return float(self.learner.summed(loss)), self._finished(parts)

    def _finished(self, parts: list[Mapping[str, Metric]]) -> dict[str, float]:
        metrics = finish_metrics(combine_metrics(gather_object(parts)))
        coefficient = self.config.entropy_coef
        return metrics | ({"entropy_coef": coefficient} if coefficient else {})

    def _loss(
        self,
        useful: Sequence[Sample],
        batches: Sequence[MicroBatch],
        old: Mapping[int, Tensor] | None,
        totals: Totals,
        parts: list[Mapping[str, Metric]],
    ) -> Callable[[MicroBatch], Tensor]:
        """The loss of a micro-batch, which adds its metrics to ``parts``."""
        threshold, bonus_tokens = self._entropy_threshold(batches)
        totals = replace(totals, entropy_tokens=bonus_tokens)
        options = loss_options(self.config)

        def loss_of(batch: MicroBatch) -> Tensor:
            tokens = self._tokens(batch, useful, old)
            ratio = self._ratio(tokens)
            result = policy_loss(
                self.config.loss_type,
                tokens,
                options,
                totals,
                entropy_threshold=threshold,
                importance_ratio=ratio,
            )
            if useful[0] is not PLACEHOLDER:
                parts.extend([result.metrics, correction_metrics(tokens, ratio)])
            return result.loss

        return loss_of

    def _tokens(
        self, batch: MicroBatch, samples: Sequence[Sample], old: Mapping[int, Tensor] | None
    ) -> TokenBatch:
        temperature = self.config.temperature
        logprobs, entropies = self.learner.score(batch, temperature=temperature, with_entropy=True)
        batch = batch.to(logprobs.device)
        parts = None if old is None else [_old(old, samples[index]) for index in batch.indices]
        return batch.token_batch(
            logprobs,
            old_logprobs=torch.cat(parts).to(logprobs.device) if parts else None,
            ref_logprobs=self._reference_logprobs(batch),
            entropies=entropies,
        )

    def _reference_logprobs(self, batch: MicroBatch) -> Tensor | None:
        if self.reference is None:
            return None
        with self.learner.autocast():
            return self.reference.logprobs(
                batch,
                temperature=self.config.temperature,
                chunk_tokens=self.config.logits_chunk_tokens,
            )

    def _ratio(self, tokens: TokenBatch) -> ImportanceRatio | None:
        # The sampler's logprobs are those of what top-p and the like left of the distribution. The
        # ratio to the whole one would shrink with every token until nothing is learned.
        if not self.config.importance_sampling_correction or self.config.is_sampling_filtered():
            return None
        return importance_ratio(
            tokens,
            self.config.importance_sampling_mode,
            clip_min=self.config.importance_sampling_clip_min,
            clip_max=self.config.importance_sampling_clip_max,
        )

    def _entropy_threshold(
        self, batches: Sequence[MicroBatch]
    ) -> tuple[float | None, float | None]:
        """The least entropy of a token that is trained, and how many tokens reach it."""
        quantile = self.config.top_entropy_quantile
        if quantile >= 1:
            return None, None
        values: list[Tensor] = []
        with torch.no_grad():
            for batch in batches:
                temperature = self.config.temperature
                _, entropies = self.learner.score(batch, temperature=temperature, with_entropy=True)
                values.append(entropies)  # type: ignore[arg-type]
        every = torch.cat(gather_object([value.cpu() for value in values]))
        threshold = entropy_threshold(every, torch.ones_like(every, dtype=torch.bool), quantile)
        return threshold, None if threshold is None else float((every >= threshold).sum())

    def _totals(self, samples: Sequence[Sample]) -> Totals:
        own = Totals.of_samples(samples)
        counts = torch.tensor(
            [own.tokens, own.rows], dtype=torch.float64, device=self.learner.device
        )
        tokens, rows = self.learner.summed(counts).tolist()
        return Totals(tokens=tokens, rows=rows)

    def _uses_zero_advantage(self) -> bool:
        config = self.config
        return bool(config.beta or config.entropy_coef or config.top_entropy_quantile < 1)

    def _anyone(self, samples: Sequence[Sample]) -> bool:
        count = torch.tensor(len(samples), device=self.learner.device)
        return int(self.learner.summed(count)) > 0


def _old(old: Mapping[int, Tensor], sample: Sample) -> Tensor:
    return torch.zeros(0) if sample is PLACEHOLDER else old[id(sample)]


def _with_advantage(samples: Sequence[Sample]) -> Sequence[Sample]:
    """Rows that have a gradient: every loss is proportional to the advantage but for KL and bonus.

    Their tokens still count in the totals, so the loss is the same as with all rows.
    """
    return [sample for sample in samples if sample.advantage != 0]
