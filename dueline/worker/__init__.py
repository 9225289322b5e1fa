"""The worker and the Lambda consumer: receive messages, run a handler for each, and acknowledge them.

`worker` and `lambda_consumer` are what users write against; docs/architecture.md follows a message through
the other files. Imports `core`; AWS only to connect.
"""
