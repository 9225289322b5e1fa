"""A sandbox on AWS: what `dueline verify` needs of a deployment of its own."""
