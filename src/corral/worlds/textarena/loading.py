"""Find a game of TextArena, and the words that some of them want."""

import copy
import json
import tempfile
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from corral.errors import UsageError
from corral.worlds.family import nearest
from corral.worlds.wordle.words import guesses, secrets

_TAGGER = "averaged_perceptron_tagger_eng"
_ONLY_NOUNS = {"weights": {}, "tagdict": {}, "classes": ["NN"]}
"""A tagger that takes every word for a noun: the list alone then says what can be secret."""


def check_known(game_id: str) -> None:
    """Raise a `UsageError` where TextArena has no such game."""
    # The package first: another thread may be importing it, and registers its games last.
    import_module("textarena")
    known = import_module("textarena.envs.registration").ENV_REGISTRY
    if game_id not in known:
        hint = nearest(game_id, known)
        raise UsageError(f"TextArena has no game {game_id!r}.{hint} It has {len(known)} ids.")


def make(game_id: str) -> Any:
    """The game, with TextArena's usual wrappers; one thread at a time.

    Raises:
        UsageError: There is none, or it lacks something.
    """
    # Word games take seconds to read their dictionaries, and a tenth of that to be copied.
    return copy.deepcopy(_made(game_id))


@cache
def _made(game_id: str) -> Any:
    textarena = import_module("textarena")
    check_known(game_id)
    provide_words()
    try:
        return textarena.make(game_id)
    except Exception as error:
        raise UsageError(
            f"TextArena cannot make {game_id!r}: {type(error).__name__}: {error}"
        ) from error


@cache
def provide_words() -> Any:
    """Have NLTK find the words of our own Wordle where it has none; kept as long as the process."""
    nltk_data = import_module("nltk.data")
    try:
        nltk_data.find("corpora/words")
    except LookupError:
        folder = tempfile.TemporaryDirectory(prefix="corral-nltk-", ignore_cleanup_errors=True)
        write_words(Path(folder.name))
        nltk_data.path.append(folder.name)
        return folder
    return None


def write_words(folder: Path) -> None:
    """Write what NLTK reads: words that can be guessed, those that can be secret, and a tagger."""
    words, tagger = folder / "corpora" / "words", folder / "taggers" / _TAGGER
    words.mkdir(parents=True)
    tagger.mkdir(parents=True)
    (words / "en").write_text("\n".join(guesses()), encoding="ascii")
    (words / "en-basic").write_text("\n".join(secrets()), encoding="ascii")
    for name, content in _ONLY_NOUNS.items():
        (tagger / f"{_TAGGER}.{name}.json").write_text(json.dumps(content), encoding="ascii")
