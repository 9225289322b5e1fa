"""Users of the emulator's account, who have one managed policy and nothing else."""

from local.emulator import ACCOUNT, Emulator


def key_of(user: str, policy: str, emulator: Emulator) -> tuple[str, str]:
    """Make a user with a managed policy; return the id and the secret of their access key."""
    iam = emulator.client("iam")
    iam.create_user(UserName=user)
    iam.attach_user_policy(UserName=user, PolicyArn=f"arn:aws:iam::{ACCOUNT}:policy/{policy}")
    key = iam.create_access_key(UserName=user)["AccessKey"]
    return key["AccessKeyId"], key["SecretAccessKey"]
