"""From the kernel to its server and page, and what fills an output later.

Imports no other room of the kernel.
"""
