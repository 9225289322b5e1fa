"""Schedules: rules that make jobs of a queue, again and again, upon the protocol and not within it."""
