"""What the stacks are made of. A construct's id in a stack is a contract: it names deployed resources."""
