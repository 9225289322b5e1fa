"""Requests that a function sends for every job: signed and sent without botocore, over connections that are kept."""
