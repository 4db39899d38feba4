"""Whether a server speaks OpenEnv's protocol as its peers rely on it: ``corral check``."""

from corral.serve.check.run import CHECKS, run_checks
from corral.serve.check.target import Probes, Target
from corral.serve.check.verdict import Check, Status, Verdict

__all__ = ["CHECKS", "Check", "Probes", "Status", "Target", "Verdict", "run_checks"]
