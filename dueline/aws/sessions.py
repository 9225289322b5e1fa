"""Sessions: the AWS session of each process."""

import os
import threading
from typing import Any

import boto3

from dueline.aws.per_process import PerProcess


def of_each_process(session: boto3.Session | None) -> PerProcess[boto3.Session]:
    """Return the given session in each process, or else one of its own, which may be used after a fork."""
    parent = os.getpid()

    def here() -> boto3.Session:
        if session is None:
            return boto3.Session()
        if os.getpid() != parent:
            _let_renew(session)
        return session

    return PerProcess(here)


def _let_renew(session: boto3.Session) -> None:
    """Give a session's credentials another lock: a thread of the parent may have been renewing them as it forked.

    botocore keeps the lock to itself; credentials that do not expire have none.
    """
    credentials: Any = session.get_credentials()
    if hasattr(credentials, "_refresh_lock"):
        credentials._refresh_lock = threading.Lock()
