"""Looking around in a deployment with read rights alone, as `dueline doctor` does. Nothing is changed."""
