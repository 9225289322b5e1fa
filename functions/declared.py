"""The registry of queues that was deployed beside this code: what queues.yaml declares."""

from pathlib import Path

from dueline.config.registry import Registry, load

DECLARED: Registry = load(Path(__file__).parent.parent / "registry.json")
