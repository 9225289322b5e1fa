"""Configuration: queues.yaml, and what the functions get of it."""
