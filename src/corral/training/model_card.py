"""The page that a trained model has on the Hub."""

from collections.abc import Sequence
from typing import Any

from huggingface_hub import ModelCardData

from corral.track import versions


def model_card(
    name: str,
    *,
    method: str,
    base_model: str | None,
    dataset: str | None = None,
    tags: Sequence[str] = (),
) -> str:
    """A model card with front matter: what was trained, from what, with which versions.

    Args:
        method: Such as ``GRPO``.
        base_model: The hub id or folder that training started from; None where it was an object.
    """
    data = ModelCardData(
        model_name=name,
        base_model=base_model,
        datasets=[dataset] if dataset else None,
        library_name="transformers",
        tags=["corral", method.lower(), *tags],
    )
    start = f" from `{base_model}`" if base_model else ""
    used = "\n".join(f"- {package} {version}" for package, version in _named(versions()))
    return (
        f"---\n{data.to_yaml()}\n---\n\n# {name}\n\n"
        f"Trained{start} with {method} by Corral, in environments it acted in.\n\n"
        f"## Versions\n\n{used}\n"
    )


def _named(found: Any) -> list[tuple[str, str]]:
    return [(name, version) for name, version in found.items() if version]
