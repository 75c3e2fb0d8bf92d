"""What ends a command with one line instead of a traceback."""


class CommandError(Exception):
    """The command can't do what was asked; the message says what to do."""
