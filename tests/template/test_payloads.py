"""The bucket of payloads: encrypted, private, over TLS only, and it forgets in time."""

from typing import Any

import pytest

from dueline.model.job import KEEP_DAYS
from tests.template.synthesis import Assembly


@pytest.fixture
def bucket(three: Assembly) -> dict[str, Any]:
    [bucket] = three.core.of_type("AWS::S3::Bucket").values()
    return bucket


def test_it_is_named_after_the_deployment_its_account_and_its_region(three: Assembly, bucket: dict[str, Any]) -> None:
    assert three.core.spelled(bucket["BucketName"]) == "dueline-payloads-<AWS::AccountId>-<AWS::Region>"
    longest = three.deployment.names.payloads(account="1" * 12, region="ap-southeast-2").replace("dueline", "x" * 15)
    assert len(longest) <= 63


def test_it_is_encrypted_private_and_has_no_versions(bucket: dict[str, Any]) -> None:
    [rule] = bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    assert rule == {"ServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}
    assert bucket["PublicAccessBlockConfiguration"] == {
        "BlockPublicAcls": True,
        "BlockPublicPolicy": True,
        "IgnorePublicAcls": True,
        "RestrictPublicBuckets": True,
    }
    assert "VersioningConfiguration" not in bucket


def test_it_answers_over_tls_only(three: Assembly) -> None:
    [policy] = three.core.of_type("AWS::S3::BucketPolicy").values()
    [statement] = policy["PolicyDocument"]["Statement"]
    assert (statement["Effect"], statement["Action"], statement["Principal"]) == ("Deny", "s3:*", {"AWS": "*"})
    assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}


def test_every_class_of_keys_is_kept_for_as_long_as_it_says_uploads_for_a_day_and_parts_no_longer(
    bucket: dict[str, Any],
) -> None:
    rules = bucket["LifecycleConfiguration"]["Rules"]
    kept = {rule["Prefix"]: rule["ExpirationInDays"] for rule in rules if "Prefix" in rule}
    assert kept == {f"{days:04}/": days for days in KEEP_DAYS} | {"uploads/": 1}
    assert {rule["Status"] for rule in rules} == {"Enabled"}
    [parts] = [rule for rule in rules if "Prefix" not in rule]
    assert parts["AbortIncompleteMultipartUpload"] == {"DaysAfterInitiation": 1}


def test_a_key_of_every_class_has_as_many_digits_as_the_policies_say() -> None:
    assert {len(f"{days:04}") for days in KEEP_DAYS} == {4}
