"""Faults between the deployed functions and AWS, kills of functions and workers, and whether the promises hold.

`python -m tests.e2e.chaos --help`
"""
