"""From readings to alerts: rules that hold for a while, begin and end.

`situation` is what is known in one second; a rule of `built_in` or `own` looks at it
and gives findings; the `engine` makes alerts of those that last. `rules` reads what a
person wrote about all this.

Imports `memory` and `verdicts`.
"""
