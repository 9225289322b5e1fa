"""Calls that are tried again: backoff with jitter, several calls at once, and how many items each gets.

For whoever asks Dueline or AWS from outside: the client, the command line, a redrive; the functions use its threads
alone. Imports `model` and `ports`.
"""
