"""Figures that anyone can repeat: `python -m bench --help`."""
