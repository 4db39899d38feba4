"""The proof that an engine and the learner see images as the model does by itself."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, cast

import torch
from torch import Tensor, nn

from corral.algorithms import collate, token_logprobs
from corral.chat import ChatFormat
from corral.chat.images import Encoded, ImageReader
from corral.chat.pictures import loaded
from corral.chat.render import Renderer
from corral.engines.protocol import Engine, ImageEngine
from corral.engines.torch_engine.forward import evaluation_mode
from corral.errors import UsageError, require
from corral.records import Message, Sample, Sampled, SamplingParams
from corral.rollout.blocking import run_blocking
from corral.training.image_columns import refuse_images, tell_of_other_values
from corral.training.optimization import OptimizationConfig

# Far above the rounding of bfloat16 logits, far below the effect of a wrong position or mask.
_TOLERANCE = 0.05
_TOKENS = 3
_SIZES = ((64, 48), (40, 72))


def check_images(
    rows: Sequence[Mapping[str, Any]],
    model: nn.Module,
    chat: ChatFormat,
    engine: Engine,
    config: OptimizationConfig,
) -> None:
    """See that data, model and configuration agree about images.

    Raises:
        UsageError: The data has images and the model reads none; or it reads some, but not in this
            way.
    """
    if chat.images is None:
        refuse_images(rows, model)
        return
    tell_of_other_values(rows)
    if config.packing:
        raise UsageError(
            "packing=True lays rows behind each other, where the positions of images would be "
            f"wrong, and {type(model).__name__} reads images. Set packing=False."
        )
    if hasattr(engine, "sample_with_images"):
        prove_images(model, chat, engine)


def prove_images(model: nn.Module, chat: ChatFormat, engine: Engine) -> None:
    """Sample after a dummy prompt with two pictures and compare all logprobs with a plain pass.

    Raises:
        UsageError: They differ, or the model cannot be run with images.
    """
    assert chat.images is not None
    prompt = chat.prompt(chat.loaded([_question()]))
    with _running(model):
        sampled = run_blocking(_sample(engine, prompt))
        plain = _plain_logprobs(model, chat.images, prompt, sampled.ids)
        learned = _learner_logprobs(model, prompt, sampled.ids)
    _compare(model, "the engine", torch.tensor(sampled.logprobs), plain)
    _compare(model, "the learner", learned, plain)


def prove_learner(model: nn.Module, renderer: Renderer) -> None:
    """Compare the learner's logprobs after a dummy prompt with two pictures with a plain pass.

    Raises:
        UsageError: They differ, or the model cannot be run with images.
    """
    assert renderer.images is not None
    prompt = renderer.encoded(loaded([_question()]), opens_turn=True)
    said = prompt.ids[-_TOKENS:]
    with _running(model):
        plain = _plain_logprobs(model, renderer.images, prompt, said)
        learned = _learner_logprobs(model, prompt, said)
    _compare(model, "the learner", learned, plain)


@contextmanager
def _running(model: nn.Module) -> Iterator[None]:
    try:
        with evaluation_mode(model), torch.no_grad():
            yield
    except (TypeError, ValueError, AttributeError, IndexError, RuntimeError) as error:
        if isinstance(error, UsageError):
            raise
        raise _cannot_run(model, f"{type(error).__name__}: {error}") from error


def _compare(model: nn.Module, who: str, logprobs: Tensor, plain: Tensor) -> None:
    gap = (logprobs - plain).abs().max().item()
    if not gap <= _TOLERANCE:
        raise _cannot_run(model, f"{who}'s logprobs differ by {gap:.3g}")


async def _sample(engine: Engine, prompt: Encoded) -> Sampled:
    params = SamplingParams(max_new_tokens=_TOKENS, stop_ids=frozenset())
    key = "corral/proof-of-images"
    try:
        return await cast(ImageEngine, engine).sample_with_images(
            prompt.ids, params, key=key, images=prompt.images
        )
    finally:
        engine.release(key)


def _plain_logprobs(
    model: nn.Module, reader: ImageReader, prompt: Encoded, said: Sequence[int]
) -> Tensor:
    """Of the tokens after the prompt, by the model's own forward on what the processor makes."""
    pictures = [placed.image.picture for placed in prompt.images]
    made = reader.inputs(pictures, reader.token * len(pictures))
    ids = torch.tensor([[*prompt.ids, *said]])
    is_image = (ids == reader.token_id).int()
    is_image[:, len(prompt.ids) :] = 0
    of_text = {"attention_mask": torch.ones_like(ids)}
    of_text |= {name: is_image for name in ("mm_token_type_ids", "token_type_ids") if name in made}
    device = next(model.parameters()).device
    arguments = {
        name: value.to(device) for name, value in {**made, **of_text, "input_ids": ids}.items()
    }
    whole: Any = model
    logits = whole(**arguments, use_cache=False).logits[0].float().cpu()
    scored = logits[:-1].log_softmax(-1).gather(1, ids[0, 1:, None])[:, 0]
    return scored[len(prompt.ids) - 1 :]


def _learner_logprobs(model: nn.Module, prompt: Encoded, said: Sequence[int]) -> Tensor:
    ids = (*prompt.ids, *said)
    row = Sample(
        ids=ids,
        loss_mask=(0,) * len(prompt.ids) + (1,) * len(said),
        logprobs=(0.0,) * len(ids),
        advantage=0.0,
        version=0,
        episode=(0, 0),
        images=prompt.images,
    )
    batch = collate([row], [0], packing=False).to(next(model.parameters()).device)
    return token_logprobs(model, batch).logprobs.float().cpu()


def _question() -> Message:
    images = require("PIL.Image", extra="vision")
    pictures = [images.linear_gradient("L").resize(size) for size in _SIZES]
    blocks = [{"type": "image", "image": picture} for picture in pictures]
    return {"role": "user", "content": [*blocks, {"type": "text", "text": "dummy"}]}


def _cannot_run(model: nn.Module, reason: str) -> UsageError:
    return UsageError(
        f"{type(model).__name__} does not see images alike in training and by itself ({reason}). "
        "Corral runs models that put an image's features in place of its tokens and look at them "
        "from left to right. Use another model, or pass processing_class=tokenizer to train this "
        "one on text."
    )
