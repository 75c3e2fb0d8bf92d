"""Recordings: the stream on disk, written, checked, read and played.

Imports no other room.
"""
