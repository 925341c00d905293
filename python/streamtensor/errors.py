"""The one error that a user can cause: a message, and notes that say what would be accepted."""


class Error(Exception):
    def __init__(self, message: str, *notes: str):
        super().__init__(message)
        self.notes = notes
