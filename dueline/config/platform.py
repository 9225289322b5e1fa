"""What platform teams ask of all that a deployment makes, validated: its key, its roles' boundary, its tags."""

import re
from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, Field, WithJsonSchema

# The retentions that CloudWatch offers, in days.
LOG_RETENTION_DAYS = [
    *(1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731),
    *(1096, 1827, 2192, 2557, 2922, 3288, 3653),
]
# CloudFormation's, of a stack and of most resources.
MOST_TAGS = 50
_KEY = r"^arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/[A-Za-z0-9-]+$"
_POLICY = r"^arn:aws[a-z-]*:iam::([0-9]{12}|aws):policy/[A-Za-z0-9+=,.@_/-]+$"
# What all services take whose resources are tagged.
_TAG_CHARACTERS = "[A-Za-z0-9 _.:/=+@-]"


class Rollout(StrEnum):
    """How a new version of the API's function takes over."""

    CANARY = "canary"
    ALL_AT_ONCE = "all_at_once"


def _is_a_key(arn: str) -> str:
    # IAM looks at the key itself: a right to use an alias is none to use what it stands for.
    if not re.fullmatch(_KEY, arn):
        raise ValueError("must be the ARN of a key, arn:aws:kms:{region}:{account}:key/{id}, and not of an alias")
    return arn


def _is_a_policy(arn: str) -> str:
    if not re.fullmatch(_POLICY, arn):
        raise ValueError("must be the ARN of a managed policy, arn:aws:iam::{account}:policy/{name}")
    return arn


def _is_not_of_aws(key: str) -> str:
    if key.lower().startswith("aws:"):
        raise ValueError("must not begin with aws:, which is AWS's own")
    return key


KeyArn = Annotated[str, AfterValidator(_is_a_key), WithJsonSchema({"type": "string", "pattern": _KEY})]
PolicyArn = Annotated[str, AfterValidator(_is_a_policy), WithJsonSchema({"type": "string", "pattern": _POLICY})]
TagKey = Annotated[str, Field(pattern=f"^{_TAG_CHARACTERS}+$", max_length=128), AfterValidator(_is_not_of_aws)]
TagValue = Annotated[str, Field(pattern=f"^{_TAG_CHARACTERS}+$", max_length=256)]
