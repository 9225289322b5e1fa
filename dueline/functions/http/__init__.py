"""The HTTP edge of the API function: read requests, write answers and problems, and describe them in OpenAPI."""
