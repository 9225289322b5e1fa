"""What is wrong with a deployment, and what to do about it, decided by what was seen of it.

Imports `config`, `operate`, `lookup`, `model` and what is below them. `dueline.aws.doctor` does the looking.
"""
