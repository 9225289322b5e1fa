"""The console: a page in the browser of whoever runs it, with their own credentials."""
