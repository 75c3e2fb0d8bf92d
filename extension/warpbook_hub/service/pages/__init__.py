"""What each page shows; how it looks is in `templates/`.

Imports `api`.
"""
