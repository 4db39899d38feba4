"""What an engine counts about its own work."""

from dataclasses import dataclass


@dataclass(slots=True, kw_only=True)
class EngineStats:
    """Running totals since the engine was made."""

    prefill_tokens: int = 0
    """Prompt tokens that went through the model."""
    decode_tokens: int = 0
    """Tokens sampled."""
    decode_steps: int = 0
    """Forward passes that decoded one token per active row."""
    reused_tokens: int = 0
    """Prompt tokens found in a KV cache instead of going through the model."""
    seconds: float = 0.0
    """Time spent in model steps."""
