"""The errors of the client. Connections raise errors of Python as well."""


class OneturnError(Exception):
    """The base of all errors of this module."""


class ConflictError(OneturnError):
    """The turn key was used before with other data: this data never runs, unless the workflow has `on_key_reuse: run`. Or the id of
    the message was used before with other content, which changes nothing."""


class NoWorkerError(OneturnError):
    """No worker answers requests. What was published stays stored until one runs."""


class UnfinishedError(OneturnError, TimeoutError):
    """The turn has no response in time, or the message is not complete. Waiting again is harmless."""


class UndecidedError(OneturnError, TimeoutError):
    """The answer is stored and not decided in time. Sending it again is harmless."""
