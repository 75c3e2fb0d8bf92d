"""The course service: pages, a JSON API, live updates, and the graders' endpoints.

It is the only process that opens the database. It runs nothing that learners wrote.

Imports `competition`, `course`, `database`, `exports`, `keeping`, `leases`, `lti`,
`notices`, `queue`, `rules`, `similarity` and `work`.
"""
