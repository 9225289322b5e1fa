"""How much of IAM's quotas the doctor sees used, as moto keeps policies."""

from datetime import UTC, datetime

from dueline.aws import inspection
from dueline.aws.deployment_context import DeploymentContext
from dueline.config.names import Names
from dueline.operations.observation import ObservedDeployment, Share

DEPLOYMENT = ObservedDeployment(names=Names("shop"), queues=())
LITTLE = '{"Version": "2012-10-17", "Statement": {"Effect": "Allow", "Action": "s3:ListAllMyBuckets", "Resource": "*"}}'


def attach(iam, role, *policies):
    iam.create_role(RoleName=role, AssumeRolePolicyDocument=LITTLE)
    for policy in policies:
        made = iam.create_policy(PolicyName=policy, PolicyDocument=LITTLE)["Policy"]
        iam.attach_role_policy(RoleName=role, PolicyArn=made["Arn"])


def test_quota_counts_policies_of_our_roles(session):
    iam = session.client("iam")
    attach(iam, "mailer", "shop_emails_producer", "mail")
    attach(iam, "biller", "shop_group_billing_consumer", "bills", "shop_group_billing_direct")
    attach(iam, "stranger", "shopping_group_billing_consumer", "shop-api", "shop_notes")
    place = DeploymentContext(deployment=DEPLOYMENT, session=session, queue_urls="", now=datetime.now(UTC))
    roles = {"biller": Share(used=3, quota=10), "mailer": Share(used=2, quota=10)}
    assert inspection.roles(place) == {"roles": roles}
