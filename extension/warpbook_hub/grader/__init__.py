"""The process that grades: it pulls jobs, and is the only one that runs submissions.

Imports `running`.
"""
