"""Schema: the version of what is written into the tables, and of how it is written.

A direct client writes with its own version of the code what functions of another version read. So a deployment tells
which versions it takes, and a client compares them with its own when it connects.
"""

from collections.abc import Mapping
from typing import Any

from dueline.errors import ClientTooOld, DeploymentTooOld

# What this version of the code writes, and the latest that it reads. Each later one is read first, and written in a
# release after that. Version 1 is left out of rows: it would cost bytes, and nothing else was ever written without.
# A kind of row that earlier versions may pass over, as they do with those that they do not know, is no later schema.
SCHEMA = 1
# The earliest that clients may still write. Rows of earlier versions are read for as long as there are some: ten years.
OLDEST_SCHEMA = 1
VERSION = "v"


def check_readable(row: Mapping[str, Any]) -> None:
    """Raise ValueError where a row was written by a later version: what its attributes mean is not known here."""
    version = int(row.get(VERSION, 1))
    if version > SCHEMA:
        raise ValueError(f"it is of schema {version}, and this version of Dueline reads up to {SCHEMA}")


def check_deployment(name: str, *, latest: int, oldest: int) -> None:
    """Raise DeploymentTooOld or ClientTooOld unless a deployment takes what this version of the code writes.

    `latest` is the latest schema that it reads, 0 if it tells none, and `oldest` the earliest that it takes.
    """
    if latest < SCHEMA:
        reads = f"reads schema {latest}" if latest else "is of a version before direct clients could be told apart"
        raise DeploymentTooOld(
            f"the deployment {name!r} {reads}, and this client writes schema {SCHEMA}: deploy it with this version of"
            " Dueline, or install the version that is deployed"
        )
    if oldest > SCHEMA:
        raise ClientTooOld(
            f"the deployment {name!r} takes schemas {oldest} to {latest}, and this client writes schema {SCHEMA}:"
            " install the version of Dueline that is deployed"
        )
