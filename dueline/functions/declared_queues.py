"""The queues that queues.yaml declares, as they were deployed beside this code."""

from pathlib import Path

from dueline.config.registry import Registry, load

DECLARED: Registry = load(Path(__file__).parents[2] / "registry.json")
