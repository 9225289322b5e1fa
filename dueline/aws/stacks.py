"""What CloudFormation is doing with a stack."""

from typing import Any

from dueline.aws.faults import translated


class Stacks:
    """CloudFormation's stacks. `client` is boto3's."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def status(self, stack: str) -> str:
        """Return the status of a stack, by its id, such as DELETE_IN_PROGRESS. Raises Throttled or Unavailable."""
        with translated(f"asking for the status of {stack}"):
            [found] = self._client.describe_stacks(StackName=stack)["Stacks"]
        return str(found["StackStatus"])
