"""What is asked and changes nothing: a job's status and outcome, the list of jobs, how a queue is doing.

Imports `protocol`, `model` and what is below them.
"""
