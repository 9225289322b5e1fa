"""The stacks on AWS: `stacks` adds them, and each is made of `constructs`."""
