"""Which CloudWatch dashboards there are."""

from enum import StrEnum


class Dashboards(StrEnum):
    """None, that of the deployment, or one of each queue as well: an account's first three cost nothing."""

    NONE = "none"
    DEPLOYMENT = "deployment"
    ALL = "all"
