"""Environments that each live in a process of their own: for what hangs, crashes or leaks."""

from corral.env.own_process.factory import CallTimeoutError, OwnProcess, ProcessLostError

__all__ = ["CallTimeoutError", "OwnProcess", "ProcessLostError"]
