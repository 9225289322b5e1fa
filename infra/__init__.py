"""The stacks, made of one construct a file."""
