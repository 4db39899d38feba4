"""Find a game of OpenSpiel, and say what of it may be shown."""

from typing import Any

from corral.errors import UsageError, require
from corral.worlds.family import nearest


def load(name: str, player: int) -> Any:
    """The game called ``name``; one with simultaneous moves is played one seat after the other.

    Raises:
        UsageError: There is none, it has no such seat, or no seed would fix it.
        MissingExtraError: OpenSpiel is not installed.
    """
    spiel = require("pyspiel", extra="openspiel")
    short = name.partition("(")[0]
    known = spiel.registered_names()
    if short not in known:
        hint = nearest(short, known)
        raise UsageError(f"OpenSpiel has no game {short!r}.{hint} It has {len(known)} games.")
    try:
        game = spiel.load_game(name)
    except spiel.SpielError as error:
        reason = " ".join(str(error).split())
        raise UsageError(f"OpenSpiel cannot load {name!r}: {reason:.200}") from error
    kind = game.get_type()
    if kind.dynamics == kind.Dynamics.MEAN_FIELD:
        raise UsageError(f"{name} is a mean-field game: it has no seat to play from.")
    if kind.chance_mode == kind.ChanceMode.SAMPLED_STOCHASTIC:
        raise UsageError(f"{name} draws its chance where no seed reaches: it cannot be played.")
    if kind.dynamics == kind.Dynamics.SIMULTANEOUS:
        game = spiel.convert_to_turn_based(game)
    if not 0 <= player < game.num_players():
        raise UsageError(f"player={player}: {name} has the seats 0 to {game.num_players() - 1}.")
    kind = game.get_type()
    shows = kind.provides_information_state_string or kind.provides_observation_string
    if not (is_open(game) or shows):
        raise UsageError(f"{name} does not say what a seat may see: it cannot be shown.")
    return game


def is_open(game: Any) -> bool:
    """Whether every seat sees everything; no seat sees moves made at the same time."""
    kind = game.get_type()
    return kind.information == kind.Information.PERFECT_INFORMATION
