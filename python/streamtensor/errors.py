"""The error for wrong use: a message, and notes that say what is accepted."""


class Error(Exception):
    def __init__(self, message: str, *notes: str):
        super().__init__(message)
        self.message, self.notes = message, notes

    def __str__(self) -> str:
        """Both, also where another package shows the error: a notebook, Dynamo."""
        # PyTorch adds lines of its own to the arguments of what it passes on
        return "\n".join([self.message, *(f"note: {note}" for note in self.notes)])
