"""What of a folder is sent away: its files, and none of its secrets."""

import fnmatch
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from corral.errors import UsageError
from corral.serve.ignoring import Found, walk

SECRET_NAMES = (
    *(".env", ".env.*", ".envrc", "*.pem", "*.key", "*.p12", "*.pfx", "*.keystore", "*.jks"),
    *("id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", ".netrc", ".pypirc", ".npmrc"),
    *(".git-credentials", ".htpasswd", "credentials", "credentials.*", "secrets.*", "token"),
    *("token.*", "*_token", "*_token.txt", "*service*account*.json", "kubeconfig"),
)
HARMLESS_NAMES = ("*.example", "*.sample", "*.template", "*.py", "*.md", "*.pub")
"""What such a name ends in when it holds no secret; contents are looked at all the same."""
SECRET_TEXTS = {
    "a private key": rb"-----BEGIN [A-Z ]*PRIVATE KEY-----",
    "a Hugging Face token": rb"\bhf_[A-Za-z0-9]{30,}",
    "an API key": rb"\bsk-[A-Za-z0-9_-]{20,}",
    "a GitHub token": rb"\b(?:gh[pousr]_[A-Za-z0-9]{36}|github_pat_[A-Za-z0-9_]{22,})",
    "an AWS key": rb"\bAKIA[0-9A-Z]{16}\b",
    "a Slack token": rb"\bxox[abprs]-[A-Za-z0-9-]{10,}",
}
LOOKED_THROUGH_BYTES = 2 * 1024 * 1024
"""Of each file; keys are in small ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedFile:
    """One file that is sent."""

    place: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """What is sent of a folder, and what is not."""

    folder: Path
    files: tuple[PackedFile, ...]
    left_out: tuple[Found, ...]

    @property
    def size(self) -> int:
        """In bytes, all files together."""
        return sum(file.size for file in self.files)


def pack(folder: Path, *, include: Sequence[str] = ()) -> Packed:
    """Find out what to send of ``folder``.

    Args:
        include: Patterns of paths that are sent although they look like secrets.

    Raises:
        UsageError: A file looks like a secret; the message names it, and never what is in it.
    """
    found = list(walk(folder))
    kept = [entry.place for entry in found if not entry.reason]
    _check_patterns(include, kept)
    suspects = [
        f"{place} ({reason})"
        for place in kept
        if not any(fnmatch.fnmatchcase(place, pattern) for pattern in include)
        and (reason := _why_secret(folder / place))
    ]
    if suspects:
        raise UsageError(
            f"These files look like secrets, so nothing was sent: {', '.join(suspects)}. Add them "
            "to .gitignore, or send them all the same with --include PATH."
        )
    files = [PackedFile(place=place, size=(folder / place).stat().st_size) for place in kept]
    left_out = [entry for entry in found if entry.reason]
    return Packed(folder=folder, files=tuple(files), left_out=tuple(left_out))


def _check_patterns(include: Sequence[str], kept: Sequence[str]) -> None:
    for pattern in include:
        if not fnmatch.filter(kept, pattern):
            raise UsageError(
                f"--include {pattern!r} names no file that would be sent. Write a path relative to "
                "the folder; files that .gitignore names are never sent."
            )


def _why_secret(file: Path) -> str:
    name = file.name.lower()
    if _is_any(name, SECRET_NAMES) and not _is_any(name, HARMLESS_NAMES):
        return "its name"
    with file.open("rb") as opened:
        text = opened.read(LOOKED_THROUGH_BYTES)
    for kind, pattern in SECRET_TEXTS.items():
        if re.search(pattern, text):
            return f"{kind} is in it"
    return ""


def _is_any(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
