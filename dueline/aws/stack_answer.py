"""Answers to CloudFormation, which waits for them at a URL: what became of a resource that a function makes.

https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/crpg-ref-responses.html
"""

import json
import os
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from botocore.awsrequest import AWSRequest
from botocore.httpsession import URLLib3Session

from dueline.aws.faults import translated
from dueline.errors import Unavailable

_SECONDS = 5
# An answer has 4,096 bytes at most.
_MOST_CHARACTERS = 500


def send(event: Mapping[str, Any], *, id: str, fault: str | None = None) -> None:
    """Tell the stack that its resource is made, or why not. Raises Unavailable when that does not arrive."""
    told = {name: event[name] for name in ("StackId", "RequestId", "LogicalResourceId")}
    told |= {"PhysicalResourceId": id, "Status": "SUCCESS" if fault is None else "FAILED"}
    if fault is not None:
        told["Reason"] = fault[:_MOST_CHARACTERS]
    # The URL is signed for no content type.
    request = AWSRequest("PUT", event["ResponseURL"], data=json.dumps(told), headers={"content-type": ""})
    trusted: Any = os.environ.get("AWS_CA_BUNDLE", True)
    with translated("answering CloudFormation"):
        answer = URLLib3Session(verify=trusted, timeout=_SECONDS).send(request.prepare())
    if answer.status_code != HTTPStatus.OK:
        raise Unavailable(f"answering CloudFormation: status {answer.status_code}")
