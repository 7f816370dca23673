"""Doors to other libraries: translation only."""
