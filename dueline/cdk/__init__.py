"""Dueline in an app of the CDK: `Dueline`, and `load` for a file such as queues.yaml."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dueline.cdk.stacks import Dueline
    from dueline.config.deployment import load

__all__ = ["Dueline", "load"]
_PLACES = {"Dueline": "dueline.cdk.stacks", "load": "dueline.config.deployment"}


def __getattr__(name: str) -> object:
    # What bundles the functions' code needs no CDK, which takes seconds to import.
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)
