from typing import Any

import pytest

from corral.training.completions import first_of_each_prompt


@pytest.mark.contract(44)
def test_unique_prompts_are_shown_with_their_first_completion() -> None:
    talk = [{"role": "user", "content": "a"}]
    rows: list[dict[str, Any]] = [
        {"prompt": "a", "completion": 1},
        {"prompt": talk, "completion": 2},
        {"prompt": "a", "completion": 3},
        {"prompt": list(talk), "completion": 4},
    ]
    assert [row["completion"] for row in first_of_each_prompt(rows)] == [1, 2]
