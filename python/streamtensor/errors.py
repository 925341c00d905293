"""The error for wrong use: a message, and notes that say what is accepted."""


class Error(Exception):
    def __init__(self, message: str, *notes: str):
        super().__init__(message)
        self.notes = notes
