"""The ports on AWS."""
