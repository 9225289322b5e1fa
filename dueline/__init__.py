"""Dueline: a distributed delayed-job queue, serverless on AWS."""

__version__ = "0.1.0"
