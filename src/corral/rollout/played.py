"""What one call to play leaves: groups, and the environments they were played in."""

from dataclasses import dataclass

from corral.records import Group


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedGroup:
    """A group together with its live environments.

    The environments belong to the player, which resets them in its next call to ``play``: reward
    functions look at them before that, and nobody keeps them.
    """

    group: Group
    environments: tuple[object | None, ...]
    """One for each episode; None where there is no environment or a fault took it."""
    is_text: bool = False
    """The prompt is plain text that the model continued: there is no conversation."""
