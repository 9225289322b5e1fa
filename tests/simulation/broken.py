"""What is raised when a promise does not hold."""


class Broken(AssertionError):
    """A promise does not hold. `promise` is its name."""

    def __init__(self, promise: str, what: str) -> None:
        super().__init__(f"{promise}: {what}")
        self.promise = promise
