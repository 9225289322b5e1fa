"""The HTTP edge of the API function: forms of requests, answers, problems, and the OpenAPI document of them all."""
