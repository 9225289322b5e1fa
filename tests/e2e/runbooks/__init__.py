"""Each page of docs/runbooks is followed by the word, on the local AWS."""
