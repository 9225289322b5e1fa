"""The client: schedule, look up, list, reschedule and cancel jobs from Python, over HTTP or straight on AWS.

`api` says what it asks for; `http_api` asks that over HTTP, `aws.direct_api` of AWS itself.
Imports `operate`, `lookup`, `retry`, `model`; AWS only to connect.
"""
