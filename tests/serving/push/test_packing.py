from pathlib import Path

import pytest

from corral.errors import UsageError
from corral.serve.packing import PackedFile, pack

SECRETS = {
    "a private key": "-----BEGIN OPENSSH PRIVATE KEY-----",
    "a Hugging Face token": "hf_" + "a1B2" * 9,
    "an API key": "sk-" + "a1B2" * 9,
    "a GitHub token": "ghp_" + "a1B2" * 9,
    "an AWS key": "AKIA" + "A1B2" * 4,
    "a Slack token": "xoxb-" + "1234567890",
}
SECRET_NAMES = [".env", ".env.local", "server.pem", "id_rsa", "token.txt", "credentials.json"]
HARMLESS_NAMES = [".env.example", "tokenizer.json", "token.py", "environment.py", "secrets.py"]


def test_files_are_listed_with_their_sizes_and_the_rest_with_reasons(tmp_path: Path):
    (tmp_path / "a.txt").write_text("12345", encoding="utf-8")
    (tmp_path / ".env").write_text("KEY=1", encoding="utf-8")
    (tmp_path / ".gitignore").write_text(".env\n", encoding="utf-8")
    packed = pack(tmp_path)
    expected = (PackedFile(place=".gitignore", size=5), PackedFile(place="a.txt", size=5))
    assert packed.files == expected
    assert packed.size == 10
    assert [(entry.place, entry.reason) for entry in packed.left_out] == [
        (".env", ".gitignore: .env")
    ]


@pytest.mark.parametrize("name", SECRET_NAMES)
def test_a_file_with_the_name_of_a_secret_is_refused(tmp_path: Path, name: str):
    (tmp_path / name).write_text("hello", encoding="utf-8")
    with pytest.raises(UsageError, match=r"nothing was sent.*--include"):
        pack(tmp_path)


@pytest.mark.parametrize("name", HARMLESS_NAMES)
def test_a_file_whose_name_only_resembles_a_secret_is_sent(tmp_path: Path, name: str):
    (tmp_path / name).write_text("hello", encoding="utf-8")
    assert [file.place for file in pack(tmp_path).files] == [name]


@pytest.mark.parametrize("kind", SECRETS)
def test_a_secret_in_a_file_is_refused_by_kind_and_never_repeated(tmp_path: Path, kind: str):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "app.py").write_text(f"KEY = '{SECRETS[kind]}'\n", encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        pack(tmp_path)
    assert f"deep/app.py ({kind} is in it)" in str(caught.value)
    assert SECRETS[kind] not in str(caught.value)


def test_what_is_asked_for_is_sent_all_the_same_and_nothing_else(tmp_path: Path):
    for name in ("a.pem", "b.pem", "c.key"):
        (tmp_path / name).write_text("hello", encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        pack(tmp_path, include=["*.pem"])
    assert "c.key" in str(caught.value)
    assert "a.pem" not in str(caught.value)
    assert len(pack(tmp_path, include=["*.pem", "c.key"]).files) == 3


def test_asking_for_a_file_that_is_not_there_is_an_error(tmp_path: Path):
    (tmp_path / "a.txt").write_text("hello", encoding="utf-8")
    with pytest.raises(UsageError, match=r"'b\.txt' names no file"):
        pack(tmp_path, include=["b.txt"])
