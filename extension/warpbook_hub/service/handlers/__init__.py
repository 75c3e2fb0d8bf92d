"""What tornado calls: the API, pages of live changes, graders, keepers, platforms.

The top of the service below `application`.

Imports no room beside it.
"""
