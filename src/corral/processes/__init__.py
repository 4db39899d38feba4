"""Processes that end with whoever started them, however that ends, and everything below them."""

from corral.processes.supervised import Job, supervisor_command

__all__ = ["Job", "supervisor_command"]
