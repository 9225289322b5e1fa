"""How a worker is watched: logs, metrics and health."""
