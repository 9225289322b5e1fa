"""What the stacks are made of, a construct a file; its id in a stack is a contract: it names deployed resources."""
