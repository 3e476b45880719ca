"""Text that comes from a file, made fit for messages, terminals and logs."""

from __future__ import annotations


def printable(text: str, max_length: int = 200) -> str:
    r"""Return text with its unprintable characters escaped, shortened in the middle.

    A file may hold escape sequences, which control a terminal, line breaks, which forge lines of a
    log, characters that reverse the direction of writing, and names of any length.  Spaces and
    backslashes stay, so that applying the function twice changes nothing.

    Parameters
    ----------
    text : str
    max_length : int
        A longer text keeps its two ends.

    Examples
    --------
    >>> printable("a\x1b[31m")
    'a\\x1b[31m'
    >>> printable("abcdefghij", max_length=7)
    'ab...ij'
    """
    if len(text) > max_length:
        half = (max_length - 3) // 2
        text = f"{text[:half]}...{text[-half:]}"
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
