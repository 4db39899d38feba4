"""TOML and dotted overrides become a validated configuration that says where each value is from."""

from corral.config.dump import dump
from corral.config.load import load
from corral.config.origins import with_written_origins
from corral.config.resolved import Flag, Resolved
from corral.config.secrets import is_secret_name, redact

__all__ = ["Flag", "Resolved", "dump", "is_secret_name", "load", "redact", "with_written_origins"]
