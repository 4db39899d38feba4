"""Whether the Hugging Face hub has a model or dataset, asked once and not for a minute.

What loads them asks for each of their files, and again and again when nothing answers: good for a
download, tedious for a name with a typing error.
"""

from functools import lru_cache
from pathlib import Path
from typing import Any

from huggingface_hub import HfApi, constants, try_to_load_from_cache
from huggingface_hub.errors import HfHubHTTPError, HFValidationError, RepositoryNotFoundError

from corral.errors import UsageError

ANSWER_TIMEOUT_S = 10.0
"""How long the hub may take to say that it is there."""


def is_path(name: str) -> bool:
    """Whether a name can only be a path: a hub id is ``name`` or ``owner/name``."""
    return name.startswith(("/", ".", "~")) or name.count("/") > 1 or "\\" in name


def check_hub_has(name: str | Path, what: str, **options: Any) -> None:
    """Check that a name stands for a folder, or for a model that the hub has, or had once.

    Args:
        what: The argument that named it, for errors.
        options: What ``from_pretrained`` will get; ``token``, ``revision`` and ``cache_dir`` count.

    Raises:
        UsageError: It is no folder, and the hub has no such model or does not answer.
    """
    if Path(name).exists() or is_path(str(name)) or constants.HF_HUB_OFFLINE:
        return  # whoever loads it says what is wrong
    wanted = {key: options.get(key) for key in ("revision", "cache_dir")}
    try:
        is_cached = isinstance(try_to_load_from_cache(str(name), "config.json", **wanted), str)
    except HFValidationError:
        return  # no hub id: the same
    if not is_cached:
        _check("model", str(name), what, options.get("token"))


def check_hub_has_dataset(name: str, what: str, cache: Path) -> None:
    """Check that the hub has a dataset, unless it was read before.

    Args:
        what: The argument that named it, for errors.
        cache: Where ``datasets`` keeps what it has read.

    Raises:
        UsageError: The hub has no such dataset, or does not answer.
    """
    if not (constants.HF_HUB_OFFLINE or (cache / name.replace("/", "___")).is_dir()):
        _check("dataset", name, what, None)


def _check(kind: str, name: str, what: str, token: Any) -> None:
    try:
        _ask(kind, name, token)
    except RepositoryNotFoundError:
        raise UsageError(
            f"{what}={name!r} is no file or folder here, and {constants.ENDPOINT} has no {kind} of "
            "that name, or none for you: see the spelling, or log in with `hf auth login`."
        ) from None
    except (HFValidationError, HfHubHTTPError):
        return  # no hub id, of which others tell; or a hub that is busy: trying again is right
    except Exception as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise UsageError(
            f"{what}={name!r} is no file or folder here, and {constants.ENDPOINT} cannot be "
            f"reached ({reason}). Give a path that is there, or see to the network."
        ) from error


@lru_cache(maxsize=64)
def _ask(kind: str, name: str, token: Any) -> None:
    """Raise what the hub answers, unless it has the model or dataset; that is remembered."""
    hub = HfApi(constants.ENDPOINT, token=token)
    ask = hub.model_info if kind == "model" else hub.dataset_info
    ask(name, timeout=ANSWER_TIMEOUT_S)
