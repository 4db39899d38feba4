"""Whether the Hugging Face hub has a model, asked once and not for a minute.

What loads models asks for each of their files, and again and again when nothing answers: good for a
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
        if isinstance(try_to_load_from_cache(str(name), "config.json", **wanted), str):
            return
        _ask(str(name), options.get("token"))
    except HFValidationError:
        return  # no hub id: the same
    except RepositoryNotFoundError:
        raise UsageError(
            f"{what}={str(name)!r} is no folder here, and {constants.ENDPOINT} has no model of "
            "that name, or none for you: see the spelling, or log in with `hf auth login`."
        ) from None
    except HfHubHTTPError:
        return  # a hub that is busy: there, trying again is right
    except Exception as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise UsageError(
            f"{what}={str(name)!r} is no folder here, and {constants.ENDPOINT} cannot be reached "
            f"({reason}). Give a folder that save_pretrained wrote, or see to the network."
        ) from error


@lru_cache(maxsize=64)
def _ask(name: str, token: Any) -> None:
    """Raise what the hub answers, unless it has the model; that is remembered."""
    HfApi(constants.ENDPOINT, token=token).model_info(name, timeout=ANSWER_TIMEOUT_S)
