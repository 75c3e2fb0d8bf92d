"""What people are told of results, appeals, parked jobs and graders: page and mail.

Imports `database`.
"""
