"""What is left out is what git leaves out: every case is put to git itself."""

import random
import subprocess
from pathlib import Path

import pytest

from corral.serve.ignoring import walk

TREE = (
    *("a.txt", "b.log", "important.log", "with space.txt", "#hash", "!bang", "file[1].txt"),
    *("docs/a.txt", "docs/b.log", "docs/api/a.txt", "docs/api/deep/c.log", "build/out.bin"),
    *("src/build/out.bin", "src/a.txt", "src/x/y/z.txt", "src/x/keep.txt", "notes", "docs/notes"),
)
RULES = {
    "suffix": "*.log\n",
    "taken back": "*.log\n!important.log\n",
    "order matters": "!important.log\n*.log\n",
    "tied to the top": "/a.txt\n",
    "a slash inside ties": "docs/a.txt\n",
    "any level": "a.txt\n",
    "folders only": "build/\nnotes/\n",
    "nothing inside an ignored folder comes back": "docs/\n!docs/a.txt\n",
    "contents, with an exception": "docs/*\n!docs/api/\n",
    "two stars in front": "**/out.bin\n",
    "two stars in the middle": "src/**/z.txt\n",
    "two stars in the middle match nothing, too": "src/**/a.txt\n",
    "two stars at the end": "src/**\n",
    "two stars at the end, with an exception": "src/x/**\n!src/x/keep.txt\n",
    "a question mark": "?.txt\n",
    "a class": "[ab].txt\n",
    "not of a class": "[!a].txt\n",
    "escapes": "\\#hash\n\\!bang\nfile\\[1\\].txt\n",
    "comments and blanks": "# a.txt\n\n   \nb.log   \n",
    "a star stops at a slash": "docs/*.log\n",
    "a dot is a dot": "a?txt\n/b.lo\n",
}


@pytest.mark.parametrize("rules", RULES.values(), ids=RULES)
def test_a_rule_means_what_it_means_to_git(tmp_path: Path, rules: str):
    make(tmp_path, {".gitignore": rules})
    assert kept(tmp_path) == kept_by_git(tmp_path)


PARTS = ["a.txt", "*.log", "docs", "build", "*", "**", "src", "x", "?.txt", "[a-z]*", "[!d]*", "z*"]


@pytest.mark.parametrize("seed", range(5))
def test_rules_made_up_mean_what_they_mean_to_git(tmp_path: Path, seed: int):
    draw = random.Random(seed)
    make(tmp_path, {})
    for _ in range(10):
        rules = [
            draw.choice(["", "", "/", "!"])
            + "/".join(draw.choices(PARTS, k=draw.randint(1, 3)))
            + draw.choice(["", "/"])
            for _ in range(draw.randint(1, 4))
        ]
        (tmp_path / ".gitignore").write_text("\n".join(rules), encoding="utf-8")
        assert kept(tmp_path) == kept_by_git(tmp_path), rules


def test_a_rule_in_a_folder_holds_below_it_and_overrules_those_above(tmp_path: Path):
    make(tmp_path, {".gitignore": "*.log\n", "docs/.gitignore": "!b.log\n/a.txt\n"})
    assert kept(tmp_path) == kept_by_git(tmp_path)
    assert "docs/b.log" in kept(tmp_path)
    assert {"docs/api/a.txt", "a.txt"} <= kept(tmp_path)


def test_what_tools_make_is_left_out_without_any_rule(tmp_path: Path):
    make(tmp_path, {".git/config": "", "x/__pycache__/a.pyc": "", "demo.egg-info/PKG-INFO": ""})
    make(tmp_path, {"my-own-venv/pyvenv.cfg": "", "my-own-venv/lib/a.py": "", ".DS_Store": ""})
    assert kept(tmp_path) == set(TREE)


def test_a_link_is_not_followed_and_a_reason_is_given(tmp_path: Path):
    outside = tmp_path / "outside.txt"
    outside.write_text("secret", encoding="utf-8")
    folder = tmp_path / "folder"
    make(folder, {})
    (folder / "link.txt").symlink_to(outside)
    (folder / "loop").symlink_to(folder)
    reasons = {entry.place: entry.reason for entry in walk(folder) if entry.reason}
    assert set(reasons) == {"link.txt", "loop"}
    assert "link" in reasons["loop"]


def make(folder: Path, extra: dict[str, str]) -> None:
    for place, text in {**dict.fromkeys(TREE, "x"), **extra}.items():
        path = folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def kept(folder: Path) -> set[str]:
    return {entry.place for entry in walk(folder) if not entry.reason}


def kept_by_git(folder: Path) -> set[str]:
    subprocess.run(["git", "init", "-q", "."], cwd=folder, check=True)
    command = ["git", "ls-files", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=folder, check=True, capture_output=True).stdout
    return {place for place in listed.decode().split("\0") if place}
