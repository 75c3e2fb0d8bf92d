"""Servers with a GPU under other spawners, and the files that a site's hub takes.

Imports no other room.
"""
