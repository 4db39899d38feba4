"""Which parts of waiting prompts go through the model next."""

from collections.abc import Sequence

import numpy as np

from corral.engines.torch_engine.forward import Piece
from corral.engines.torch_engine.requests import Request

# Tokens of one prompt that go through the model at once: attention's working memory grows with it.
_CHUNK_TOKENS = 512
# Tokens, padding included, of one prefill pass.
_PASS_TOKENS = 2048
# Rows join a prefill pass if padding is at most as long as their own tokens.
_PADDING_SHARE = 0.5


def choose_pieces(ready: Sequence[Request]) -> list[tuple[Request, Piece]]:
    """Pick prompts of similar remaining length, longest first, up to the tokens of one pass.

    A piece with images goes alone: what a vision tower makes of one should not depend on others.
    """
    left = {id(request): len(request.prompt) - request.start for request in ready}
    ordered = sorted(ready, key=lambda request: -left[id(request)])
    width = min(left[id(ordered[0])], _CHUNK_TOKENS)
    pieces = [(ordered[0], next_piece(ordered[0], width))]
    if pieces[0][1].images:
        return pieces
    for request in ordered[1 : max(1, _PASS_TOKENS // width)]:
        if left[id(request)] < _PADDING_SHARE * width:
            break
        piece = next_piece(request, width)
        if not piece.images:
            pieces.append((request, piece))
    return pieces


def next_piece(request: Request, width: int) -> Piece:
    """The next ``width`` tokens of a prompt; less, or more, where an image would be cut."""
    start = request.start
    stop = min(len(request.prompt), start + width)
    ids = request.prompt[start:stop]
    if not request.images:
        return Piece(slot=request.slot, start=start, ids=ids)
    for one in request.images:
        if one.start < stop < one.stop:
            stop = one.start if one.start > start else one.stop
    positions = request.positions
    images = tuple(one.image for one in request.images if start <= one.start and one.stop <= stop)
    return Piece(
        slot=request.slot,
        start=start,
        ids=_real_ids(request.prompt[start:stop], request.placeholder, has_images=bool(images)),
        positions=None if positions is None else positions[:, start:stop],
        images=images,
    )


def _real_ids(ids: np.ndarray, placeholder: int, *, has_images: bool) -> np.ndarray:
    if has_images:
        # One that the model wrote has no pixels, and among those that have some the model's forward
        # would refuse them all. (A conversation with such a token is not trained.)
        ids = np.where(ids == placeholder, 0, ids)
    return np.where(ids < 0, placeholder, ids)
