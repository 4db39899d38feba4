"""Worlds of their own: found by name, installed apart, and served where this process cannot be.

::

    from corral.hosting import find_environment, install

    install("browser")                     # once: corral install browser
    world = find_environment("browser")    # its factory makes environments as any other
"""

from corral.hosting.finding import NotInstalledError, find_environment, hosted_environment
from corral.hosting.installing import install, remove
from corral.hosting.places import Installed, installed_worlds
from corral.hosting.server import HostedEnvironment

__all__ = [
    "HostedEnvironment",
    "Installed",
    "NotInstalledError",
    "find_environment",
    "hosted_environment",
    "install",
    "installed_worlds",
    "remove",
]
