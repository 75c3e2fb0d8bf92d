"""Measurements beside peers; run from the repository's root."""
