"""The registry of queues that was deployed beside this code."""

from pathlib import Path

from dueline.config.registry import Registry, load

REGISTRY: Registry = load(Path(__file__).parent.parent / "registry.json")
