"""Calls that are tried again: backoff with jitter, several calls at once, and how many items each gets.

For whoever asks Dueline or AWS from outside: the client, the command line, a redrive. Of the functions all use its
threads, and the API's its calls, for what a stack asks. Imports `model` and `ports`.
"""
