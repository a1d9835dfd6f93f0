"""An expected error of a command of `trimtab-service`."""


class CommandError(Exception):
    """Ends the command with a message: on standard error, and with --json also as JSON on standard output.

    `code` names the error for programs, and `status` is the exit status.
    """

    def __init__(self, message: str, code: str, status: int = 1) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.status = status
