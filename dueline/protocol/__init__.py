"""The way of a job, a step a file: submit, ingest, tick, dispatch, cancel, reschedule.

Each step knows the table and the queues by `ports` alone, so that the simulation runs it as it is.
Imports `model`, `ports` and `errors`.
"""
