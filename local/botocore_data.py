"""Botocore's descriptions of the services that functions use, read once: forks find them in memory."""

from functools import cache

import boto3
import botocore.session

botocore.session.create_loader = cache(botocore.session.create_loader)
session = boto3.Session("test", "test", region_name="us-east-1")
for service in ("dynamodb", "s3", "sqs", "ssm"):
    session.client(service)
