"""The code blocks of the pages, and what stands in for what is too long to run in a test."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("README.md", "CONTRIBUTING.md", *sorted(f"docs/{p.name}" for p in ROOT.glob("docs/*.md")))

_FENCE = re.compile(r"^```(?P<language>[^\n]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`((?:corral|make) [^`\n]+)`")


@dataclass(frozen=True)
class Block:
    """One fenced block of a page."""

    page: str
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}-{self.language or 'none'}"

    def needs_packages(self) -> bool:
        """Whether it plays what has to be installed: tests/worlds/test_doors_page.py runs it."""
        return self.page == "docs/doors.md" and "find_environment(" in self.text

    def commands(self) -> list[str]:
        """The lines of a shell block without comments."""
        lines = [line.partition("  #")[0].strip() for line in self.text.splitlines()]
        return [line for line in lines if line and not line.startswith("#")]


def text_of(page: str) -> str:
    """A page of the repository."""
    return (ROOT / page).read_text(encoding="utf-8")


def blocks() -> list[Block]:
    """All fenced blocks of all pages, in order."""
    found = []
    for page in PAGES:
        text = text_of(page)
        for match in _FENCE.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            found.append(Block(page, line, match["language"].strip(), match["text"]))
    return found


def inline_commands() -> list[tuple[str, str]]:
    """``(page, command)`` of every ``corral …`` or ``make …`` in running text."""
    return [(page, command) for page in PAGES for command in _INLINE.findall(text_of(page))]
