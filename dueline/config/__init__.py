"""Configuration: queues.yaml, and what the functions get of it."""


class ConfigurationError(ValueError):
    """A file is not as it should be; the message names each field, its value and what is allowed."""
