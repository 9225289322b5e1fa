"""A deployment of the sandbox's name that is not the sandbox, or is in use, is refused."""

from pathlib import Path

import boto3
import pytest

from dueline import Client
from tests.acceptance import sandbox


def test_deployment_that_is_in_use_is_refused(client: Client, session: boto3.Session) -> None:
    id = client.schedule("flood", 1, delay=86_400).id
    with pytest.raises(sandbox.Refused, match=f"{sandbox.NAME} has jobs in queue"):
        sandbox.refuse_jobs(session)
    client.cancel(id)


def test_deployment_with_other_queues_is_refused(
    session: boto3.Session, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    other = tmp_path / "queues.yaml"
    other.write_text(f"name: {sandbox.NAME}\nqueues:\n  plain:\n")
    monkeypatch.setattr(sandbox, "QUEUES", other)
    with pytest.raises(sandbox.Refused, match=r"has the queues .*'flood'.*, which the sandbox does not have"):
        sandbox.refuse_others(session)
