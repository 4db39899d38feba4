"""Images on their way from an environment to the engine, and whose fault it is if they get lost."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import cast

from corral.engines.protocol import Engine, ImageEngine
from corral.errors import EnvironmentFault, ImageError, UsageError
from corral.records import PlacedImage, Sampled, SamplingParams


@contextmanager
def image_boundary(what: str) -> Generator[None]:
    """Turn an image that cannot be shown to the model into a fault of the episode that has it."""
    try:
        yield
    except ImageError as error:
        raise EnvironmentFault(f"{what}: {error}") from error


async def sample_with_images(
    engine: Engine,
    ids: Sequence[int],
    params: SamplingParams,
    key: str,
    images: Sequence[PlacedImage],
) -> Sampled:
    """Sample a turn after a prompt with images.

    Raises:
        UsageError: The engine shows its model no images.
    """
    if not hasattr(engine, "sample_with_images"):
        raise UsageError(
            f"{type(engine).__name__} has no sample_with_images, and so cannot show images to its "
            "model: use the built-in engine, or an environment that returns text."
        )
    return await cast("ImageEngine", engine).sample_with_images(
        ids, params, key=key, images=tuple(images)
    )
