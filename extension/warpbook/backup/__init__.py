"""What a person can't make again in one file, and back.

Imports no other room.
"""
