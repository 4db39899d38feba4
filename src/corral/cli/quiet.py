"""Keeps the libraries beneath a command from talking over it."""


def quiet_libraries() -> None:
    """Hide the progress bars and hints of transformers; its errors are still shown."""
    from transformers.utils import logging

    logging.disable_progress_bar()
    logging.set_verbosity_error()
