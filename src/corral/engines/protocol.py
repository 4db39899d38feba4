"""The seam between playing and sampling: tokens in, tokens out."""

from collections.abc import Sequence
from typing import Protocol

from corral.records import PlacedImage, Sampled, SamplingParams


class Engine(Protocol):
    """Something that samples turns. Nothing outside ``corral.engines`` knows which one runs."""

    async def sample(
        self, prompt_ids: Sequence[int], params: SamplingParams, *, key: str
    ) -> Sampled:
        """Sample one turn after ``prompt_ids`` (the whole conversation so far).

        Args:
            key: Names the conversation. A later call with the same key whose ids extend this
                call's may reuse what the engine kept (its KV cache).

        Raises:
            UsageError: The prompt is empty or leaves no room in the model's context.
            InfrastructureFault: The engine failed; the episode may be retried.
        """
        ...

    def release(self, key: str) -> None:
        """Forget what was kept for ``key``; unknown keys are fine."""
        ...

    def max_context(self) -> int:
        """How many tokens a conversation may have in all."""
        ...


class ImageEngine(Engine, Protocol):
    """An engine whose model reads images."""

    async def sample_with_images(
        self,
        prompt_ids: Sequence[int],
        params: SamplingParams,
        *,
        key: str,
        images: Sequence[PlacedImage],
    ) -> Sampled:
        """As ``sample``, where images stand in the prompt.

        Args:
            images: All images of ``prompt_ids``, in order; each begins at a placeholder.
        """
        ...
