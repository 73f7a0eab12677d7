"""Text that PTX takes as it is: the assembler refuses every character outside ASCII, in comments and strings too.

File names and comments are therefore written with Python's escapes, which the parser undoes. A quote is escaped as
well, since a PTX string cannot hold one.
"""

from __future__ import annotations

import re

__all__ = ["escape", "unescape"]

_SPECIAL = r'[^\x20-\x7e]|["\\]'
_ESCAPED = r"\\(?:\\|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8}))"


def _escaped(match: re.Match[str]) -> str:
    char = match[0]
    code = ord(char)
    if char == "\\":
        return "\\\\"
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 65536 else f"\\U{code:08x}"


def escape(text: str) -> str:
    """``text`` in printable ASCII without quotes.

    >>> escape("C:\\\\é.py")
    'C:\\\\\\\\\\\\xe9.py'
    """
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return text
    return re.sub(_SPECIAL, _escaped, text)


def unescape(text: str) -> str:
    """What `escape` was given; an escape that it does not write stays as it is."""
    if "\\" not in text:
        return text
    return re.sub(_ESCAPED, lambda match: chr(int(match[1] or match[2] or match[3] or "5c", 16)), text)
