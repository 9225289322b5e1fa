"""Faults on the way between the deployed functions and AWS, and what the deployment makes of them."""
