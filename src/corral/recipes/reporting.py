"""The page at the end of a run."""

from collections.abc import Sequence
from pathlib import Path

from corral.track import RunFolder
from corral.track.report import write_report as write_page
from corral.training.models import load_tokenizer


def write_report(folder: RunFolder, model: Path) -> None:
    """Write ``report.html`` with tokens shown as the model's tokenizer writes them."""
    tokenizer = load_tokenizer(model, None)

    def decode(ids: Sequence[int]) -> list[str]:
        return [tokenizer.decode([token]) for token in ids]

    write_page(folder, decode=decode)
