"""The functions' logger, which writes lines of JSON.

Each byte is paid for, so a line holds nothing that its log group's name says already.
"""

from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.logging.formatter import LambdaPowertoolsFormatter

_LEFT_OUT = frozenset({"location", "service", "function_name", "function_memory_size", "function_arn"})


class _Formatter(LambdaPowertoolsFormatter):
    def serialize(self, log: dict[str, Any]) -> str:  # type: ignore[override]
        return super().serialize({name: value for name, value in log.items() if name not in _LEFT_OUT})


def log(service: str | None = None) -> Logger:
    """Return the logger of a function, by default that of the environment. The same one each time."""
    return Logger(service=service, logger_formatter=_Formatter())
