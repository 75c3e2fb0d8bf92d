"""The changes that can be tried, one module for those that belong together."""
