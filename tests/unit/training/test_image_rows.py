import logging
from dataclasses import replace

import pytest

from corral.records import ModelImage, PlacedImage, Sample
from corral.training.vision import without_mismatches

PLACEHOLDER = 9


def row(*ids: int, images: int = 0) -> Sample:
    image = ModelImage(digest="ab", picture=None, tokens=2)
    return Sample(
        ids=ids,
        loss_mask=(0,) * len(ids),
        logprobs=(0.0,) * len(ids),
        advantage=1.0,
        version=0,
        episode=(0, 0),
        images=(PlacedImage(image=image, start=0, stop=2),) * images,
    )


def test_only_the_row_whose_placeholders_have_no_pixels_is_left_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    good = [row(9, 9, 1, images=1), row(1, 2), row(9, 9, 9, 9, images=2)]
    bad = [row(9, 9, 1, 9, images=1), row(1, 9), row(9, 1, images=1)]
    with caplog.at_level(logging.WARNING):
        kept = without_mismatches([bad[0], *good, *bad[1:]], PLACEHOLDER)
    assert kept == good
    assert "3 of 6 rows are not trained" in caplog.text


def test_rows_that_match_are_not_spoken_of(caplog: pytest.LogCaptureFixture) -> None:
    rows = [row(1, 2), replace(row(9, 9, images=1), advantage=2.0)]
    assert without_mismatches(rows, PLACEHOLDER) == rows
    assert not caplog.text
