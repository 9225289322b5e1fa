"""The ports on AWS, and what connects clients, workers and functions to a deployment there.

`dynamodb` and `sqs` keep the contracts of `ports`; `transport` sends without botocore what concerns every job.
Nothing but a function or a `connect` imports from here.
"""
