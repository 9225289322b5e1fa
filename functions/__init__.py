"""The Lambda functions, one thin file each."""
