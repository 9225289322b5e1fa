"""The client: schedule, look up, list, reschedule and cancel jobs from Python, over HTTP or straight on AWS.

`api` lists the calls; `http` makes them over HTTP, `aws.direct_api` on AWS itself.
Imports `core`; AWS only to connect.
"""
