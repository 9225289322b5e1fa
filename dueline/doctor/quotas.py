"""Quotas: those of the account that a deployment is near."""

from collections.abc import Iterator

from dueline.doctor.finding import Finding, Severity, guide
from dueline.doctor.seen import Seen, Share

# From there on, time to ask AWS for more.
NEAR = 0.8
_ASK = "ask for a higher quota in Service Quotas"


def quotas_near(seen: Seen) -> Iterator[Finding]:
    """Name quotas of which four fifths are used."""
    if seen.concurrency is not None:
        used = int(seen.figure("account", "concurrency"))
        yield from _near("Lambda functions at once, in the last hour", Share(used=used, quota=seen.concurrency))
    if seen.policies is not None:
        yield from _near("managed policies of the account (four a queue, and four a group)", seen.policies)
    for role, share in (seen.roles or {}).items():
        what = f"managed policies attached to the role {role}"
        yield from _near(what, share, do=f"attach the policy of a group of queues, or {_ASK}")


def _near(what: str, share: Share, *, do: str = f"{_ASK}, or use less") -> Iterator[Finding]:
    if share.used >= NEAR * share.quota:
        yield Finding(
            code="quota_near",
            severity=Severity.WARNING,
            about="account",
            what=f"{share.used:,} of {share.quota:,} {what}",
            do=do,
            page=guide("quotas"),
        )
