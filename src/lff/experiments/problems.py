"""What a user can mend is said in a line or two, without a traceback, and ends the command with exit code 2."""

from collections.abc import Iterator
from contextlib import contextmanager


class Problem(Exception):
    """A wrong argument, a missing folder, a full disk: what came and what was expected."""


class Diverged(Problem):
    """A run whose loss is not finite any more; others may go on."""


@contextmanager
def plainly() -> Iterator[None]:
    """Around what reads a user's arguments and files: its errors are theirs to mend."""
    try:
        yield
    except (ValueError, OSError) as error:
        raise Problem(str(error)) from error
