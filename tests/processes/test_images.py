"""A process whose rows have no image learns with one whose rows have some."""

from pathlib import Path

import pytest
import torch

from support.image_processes_run import scenarios
from support.launch import run_module

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:torch.*")


@pytest.mark.timeout(300)
def test_two_processes_with_images_learn_what_one_learns(tmp_path: Path) -> None:
    out = tmp_path / "together.pt"
    run_module("support.image_processes_run", out, processes=2, timeout_s=240)
    together, alone = torch.load(out), scenarios(str(tmp_path))
    assert list(alone) == list(together)
    for name, expected in alone.items():
        found = together[name]
        torch.testing.assert_close(found["weights"], expected["weights"], rtol=0, atol=1e-5)
        assert found["losses"] == pytest.approx(expected["losses"], rel=1e-5, abs=1e-6), name
        assert found["norms"] == pytest.approx(expected["norms"], rel=1e-5), name
        assert all(norm > 0 for norm in found["norms"]), name
