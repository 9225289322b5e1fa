"""The console: a page in the browser of the person who runs it, with their own AWS credentials."""
