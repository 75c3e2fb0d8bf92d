"""The keeper: a small process of root that lets people at GPUs, and takes them away.

Imports no other room.
"""
