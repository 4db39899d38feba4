from importlib.metadata import distribution

import pytest

from corral.hosting.own_source import own_requirement, requirement_of


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (
            {"url": "file:///src/my%20corral", "dir_info": {"editable": True}},
            ("--editable", "/src/my corral"),
        ),
        ({"url": "file:///src/corral", "dir_info": {}}, ("/src/corral",)),
        (
            {
                "url": "https://example.org/corral.git",
                "vcs_info": {"vcs": "git", "commit_id": "abc123"},
            },
            ("corral @ git+https://example.org/corral.git@abc123",),
        ),
        (
            {"url": "file:///wheels/corral-0.1-py3-none-any.whl", "archive_info": {}},
            ("corral @ file:///wheels/corral-0.1-py3-none-any.whl",),
        ),
    ],
)
def test_corral_is_installed_again_from_where_it_came(told: dict, words: tuple[str, ...]):
    assert requirement_of(told) == words


def test_without_a_source_the_index_gives_the_same_version(monkeypatch: pytest.MonkeyPatch):
    own = distribution("corral")
    monkeypatch.setattr(type(own), "read_text", lambda self, name: None)
    assert own_requirement() == (f"corral=={own.version}",)
