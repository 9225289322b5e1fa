"""Whose an imported module is, and how long each takes by itself."""

import re
from collections import defaultdict
from collections.abc import Mapping

from bench.cold.probe import MARK

OURS = "ours"
BOTO3 = "boto3"
STDLIB = "stdlib"
SHARES = (BOTO3, "Powertools", "pydantic", STDLIB, OURS)
# Besides its own packages, what botocore and urllib3 look for; most of it is not there.
_OF_BOTO3 = "boto3 botocore urllib3 s3transfer dateutil six jmespath certifi awscrt brotli brotlicffi backports OpenSSL"
_OF_PYDANTIC = "pydantic pydantic_core annotated_types typing_extensions typing_inspection"
_SHARE = {
    **dict.fromkeys(_OF_BOTO3.split(), BOTO3),
    **dict.fromkeys(_OF_PYDANTIC.split(), "pydantic"),
    **dict.fromkeys(("dueline", "functions"), OURS),
    "aws_lambda_powertools": "Powertools",
}
# As `-X importtime` prints it: https://docs.python.org/3/using/cmdline.html#cmdoption-X
_LINE = re.compile(r"^import time:\s+(\d+) \|\s+\d+ \|\s+(\S+)$", re.MULTILINE)


def share_of(module: str) -> str:
    """Return whose a module is; what is nobody else's is the standard library's.

    >>> share_of("botocore.session"), share_of("dueline.protocol.tick"), share_of("email.parser")
    ('boto3', 'ours', 'stdlib')
    """
    return _SHARE.get(module.partition(".")[0], STDLIB)


def own_milliseconds(importtime: str) -> dict[str, float]:
    """Return how long each module took by itself, from what `-X importtime` printed behind the mark."""
    told = importtime.partition(f"{MARK}\n")[2]
    taken: dict[str, float] = defaultdict(float)
    for microseconds, module in _LINE.findall(told):
        taken[module] += int(microseconds) / 1000
    return taken


def by_share(modules: Mapping[str, float]) -> dict[str, float]:
    """Return how long each share took."""
    taken = dict.fromkeys(SHARES, 0.0)
    for module, milliseconds in modules.items():
        taken[share_of(module)] += milliseconds
    return taken
