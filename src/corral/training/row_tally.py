"""Which rows of the data teach less than they hold.

Two numbers stand beside every step of supervised fine-tuning, of the rows that were read so far:

``rows/dropped``
    Rows without a token to learn, or with none left within ``max_length``.
``rows/truncated``
    Rows of which ``max_length`` cut something off.
"""

from dataclasses import dataclass, field

from corral.training.token_rows import TokenRow


@dataclass(slots=True)
class RowTally:
    """Rows by their place in the data, so that one that is read again counts once."""

    dropped: set[int] = field(default_factory=set[int])
    truncated: set[int] = field(default_factory=set[int])

    def saw(self, index: int, row: TokenRow, kept: TokenRow) -> None:
        """Take note of a row and of what is kept of it."""
        if not kept.trained_tokens():
            self.dropped.add(index)
        if len(kept.ids) < len(row.ids):
            self.truncated.add(index)

    def as_metrics(self) -> dict[str, float]:
        """Under the names they are logged by."""
        return {
            "rows/dropped": float(len(self.dropped)),
            "rows/truncated": float(len(self.truncated)),
        }
