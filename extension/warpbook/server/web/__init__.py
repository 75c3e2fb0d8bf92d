"""What every request passes: who asks, from where, what for, and how it is logged.

Imports no other room of the server.
"""
