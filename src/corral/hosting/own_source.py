"""Where the running Corral was installed from, so that it can be installed again elsewhere."""

import json
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from corral.errors import UsageError


def own_dependencies() -> tuple[str, ...]:
    """What the running Corral itself depends on, which an edited source changes unnoticed."""
    return tuple(sorted(text for text in _own().requires or () if "extra ==" not in text))


def own_requirement() -> tuple[str, ...]:
    """The words that have pip install this Corral: ``("--editable", "/src/corral")`` and the like.

    Raises:
        UsageError: It was not installed at all.
    """
    own = _own()
    told = own.read_text("direct_url.json")
    return requirement_of(json.loads(told)) if told else (f"corral=={own.version}",)


def requirement_of(direct_url: dict[str, Any]) -> tuple[str, ...]:
    """The same for what ``direct_url.json`` says (PEP 610)."""
    url = direct_url["url"]
    if "vcs_info" in direct_url:
        version_control = direct_url["vcs_info"]
        return (f"corral @ {version_control['vcs']}+{url}@{version_control['commit_id']}",)
    if "dir_info" not in direct_url:
        return (f"corral @ {url}",)
    folder = url2pathname(urlsplit(url).path)
    return ("--editable", folder) if direct_url["dir_info"].get("editable") else (folder,)


def _own() -> Distribution:
    try:
        return distribution("corral")
    except PackageNotFoundError:
        raise UsageError(
            "Corral itself is not installed here, so it cannot be installed into a world's "
            "virtual environment. Install it: pip install --editable PATH"
        ) from None
