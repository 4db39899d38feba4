"""The plain PyTorch engine: any ``transformers`` causal model, as it is, batched and cached."""

from corral.engines.torch_engine.engine import TorchEngine
from corral.engines.torch_engine.stats import EngineStats

__all__ = ["EngineStats", "TorchEngine"]
