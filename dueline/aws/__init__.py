"""The ports on AWS, and what connects clients, workers and functions to a deployment there.

`dynamodb` and `sqs` keep the contracts of `ports`.
Nothing but a function or a `connect` imports from here.
"""
