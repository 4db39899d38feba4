"""Trainers: they sequence playing, comparing and learning, and leave the work to other packages."""

from corral.training.grpo import GRPOTrainer
from corral.training.grpo_config import GRPOConfig
from corral.training.sft import SFTTrainer
from corral.training.sft_config import SFTConfig
from corral.training.state import TrainerState, TrainOutput

__all__ = ["GRPOConfig", "GRPOTrainer", "SFTConfig", "SFTTrainer", "TrainOutput", "TrainerState"]
