"""Syntheses, each made once."""

import jsii._type_checking
import pytest

from tests.template.synthesis import synthesize

# The CDK checks the type of each argument, as mypy did, in a fifth of the time.
jsii._type_checking._resolved_check = lambda **_: None
EMAIL = "team@example.com"
PAGER = "arn:aws:sns:eu-central-1:123456789012:pager"
AHEAD = {
    "partitions": 4,
    "visibility_timeout": 120,
    "max_receives": 10,
    "message_retention_days": 2,
    "retention_days": 3,
    "precise": True,
    "priorities": 5,
    "longest_run": 900,
    "metrics": "queue",
    "track": True,
    "retry": {"backoff": "exponential", "attempts": 7, "delay": 5, "max_delay": 600},
}

PRODUCERS = ["arn:aws:iam::210987654321:root", "arn:aws:iam::210987654321:role/shop"]
# One's name begins with another's, one has one letter, one as many as there may be.
NEIGHBOURS = {
    "emails": {"priorities": 2, "track": True, "owner": "mail-team@example.com", "producers": PRODUCERS},
    "emails-vip": {"priorities": 2},
    "e": {"owner": "arn:aws:sns:eu-central-1:123456789012:pager"},
    "emails" * 10: {"priorities": 5, "track": True},
}
OF_NEIGHBOURS = {"queues": NEIGHBOURS, "dashboards": "all", "groups": {"mail": ["emails", "e"]}}

KEY = "arn:aws:kms:eu-central-1:123456789012:key/0d8e4f6a-1111-2222-3333-444455556666"
# All that a platform team may require; a queue with metrics of its own, and one without, whose owners are mailed to.
STRICT = {
    "queues": {
        "emails": NEIGHBOURS["emails"],
        "emails" * 10: NEIGHBOURS["emails" * 10],
        "measured": {"metrics": "queue", "owner": "mail-team@example.com"},
        "plain": {"owner": PAGER},
    },
    "alarm_email": EMAIL,
    "runbook_url": "https://wiki.example.com/runbooks",
    "kms_key_arn": KEY,
    "permission_boundary": "arn:aws:iam::123456789012:policy/team/boundary",
    "tags": {"team": "platform", "cost-center": "4711", "env": "prod eu"},
    "log_retention_days": 3653,
    "termination_protection": True,
    "tracing": True,
    "dashboards": "none",
}
# No queue, a jobs table that saves wherever it may, functions that may not take all, and a domain.
THRIFTY = {
    "capacity": {"min": 50, "max": 2000},
    "storage": "infrequent",
    "point_in_time_recovery": False,
    "domain_name": "jobs.example.com",
    "certificate_arn": "arn:aws:acm:eu-central-1:123456789012:certificate/0a1b",
    "system_log_level": "INFO",
    "tick_reserved_concurrency": 30,
    "api_reserved_concurrency": 200,
}


@pytest.fixture(scope="session")
def neighbours(tmp_path_factory):
    """Queues whose names are easily taken for each other's, and a group of two."""
    return synthesize(OF_NEIGHBOURS, tmp_path_factory.mktemp("neighbours"))


@pytest.fixture(scope="session")
def one_more(tmp_path_factory):
    """The same with a queue in front that has a value for each setting."""
    return synthesize(OF_NEIGHBOURS | {"queues": {"ahead": AHEAD} | NEIGHBOURS}, tmp_path_factory.mktemp("one_more"))


@pytest.fixture(scope="session")
def strict(tmp_path_factory):
    return synthesize(STRICT, tmp_path_factory.mktemp("strict"))


@pytest.fixture(scope="session")
def thrifty(tmp_path_factory):
    """As it is synthesized to import tables that a deployment left."""
    return synthesize(THRIFTY, tmp_path_factory.mktemp("thrifty"), context={"import": "yes"})
