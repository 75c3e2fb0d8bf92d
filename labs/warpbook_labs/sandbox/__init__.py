"""Processes that are shut in: what they may do, and having jobs done by them.

Imports no other room.
"""
