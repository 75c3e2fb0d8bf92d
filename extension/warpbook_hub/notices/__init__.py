"""Notices of results, appeals, parked jobs and graders, on a page and by mail.

Imports `database`.
"""
