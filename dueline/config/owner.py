"""Who is told of alarms, validated."""

import re
from typing import Annotated

from pydantic import AfterValidator, WithJsonSchema

EMAIL = r"^[^@\s]+@[^@\s]+\.[^@\s]+$"
_TOPIC = r"^arn:aws[a-z-]*:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]+$"


def _is_told(owner: str) -> str:
    if not re.fullmatch(EMAIL, owner) and not re.fullmatch(_TOPIC, owner):
        raise ValueError("must be an e-mail address, or the ARN of an SNS topic, arn:aws:sns:{region}:{account}:{name}")
    return owner


Owner = Annotated[str, AfterValidator(_is_told), WithJsonSchema({"type": "string", "pattern": f"{EMAIL}|{_TOPIC}"})]
