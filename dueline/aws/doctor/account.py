"""Looks at the account: how much of its quotas for IAM policies is used."""

from typing import Any

from dueline.aws.doctor.place import Place
from dueline.doctor.seen import Share

# What the names of those end with that are attached to roles, of a queue or of a group.
_KINDS = ("_producer", "_consumer", "_operator", "_direct")


def policies(place: Place) -> dict[str, Any]:
    """Return how many managed policies the account has, of how many it may have."""
    summary = _summary(place)
    return {"policies": Share(used=summary["Policies"], quota=summary["PoliciesQuota"])}


def roles(place: Place) -> dict[str, Any]:
    """Return, of each role that has a policy of the deployment, how many policies it has, of how many it may have."""
    iam, quota = place.client("iam"), _summary(place)["AttachedPoliciesPerRoleQuota"]
    arns = [each["Arn"] for each in _attached(place) if _is_ours(each["PolicyName"], place)]
    found = {
        role["RoleName"]
        for arn in arns
        for page in iam.get_paginator("list_entities_for_policy").paginate(PolicyArn=arn, EntityFilter="Role")
        for role in page["PolicyRoles"]
    }
    return {"roles": {role: Share(used=_count(place, role), quota=quota) for role in sorted(found)}}


def _is_ours(policy: str, place: Place) -> bool:
    return policy.startswith(place.names.queue_prefix) and policy.endswith(_KINDS)


def _attached(place: Place) -> list[Any]:
    pages = place.client("iam").get_paginator("list_policies").paginate(Scope="Local", OnlyAttached=True)
    return [each for page in pages for each in page["Policies"]]


def _count(place: Place, role: str) -> int:
    pages = place.client("iam").get_paginator("list_attached_role_policies").paginate(RoleName=role)
    return sum(len(page["AttachedPolicies"]) for page in pages)


def _summary(place: Place) -> Any:
    return place.client("iam").get_account_summary()["SummaryMap"]
