"""The blocks of the page on doors that play what has to be installed."""

from pathlib import Path

import pytest

from support.docs_blocks import Block, blocks

BLOCKS = [block for block in blocks() if block.needs_packages()]

pytestmark = pytest.mark.timeout(900)


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_a_block_that_needs_packages_runs(
    block: Block, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    request.getfixturevalue("verifiers_home" if "verifiers:" in block.text else "doors_home")
    exec(compile(block.text, str(block), "exec"), {"__name__": "example"})
