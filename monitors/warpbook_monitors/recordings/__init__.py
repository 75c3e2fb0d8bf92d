"""Recordings: the stream on disk, written, checked, read and played."""
