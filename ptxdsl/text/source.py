"""The text that is parsed: its tokens, and errors at a place in it.

Comments are blanked out first, character for character, so that every later position is one in the text as it was
given, and an error can show the line with a caret below it, whether or not the text is a file that could be read again.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple, NoReturn, TypeVar

from ..errors import Loc, ParseError

__all__ = ["Source", "Token"]

T = TypeVar("T")

_COMMENT = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?(?:\*/|\Z)|^[ \t]*#[^\n]*', re.DOTALL | re.MULTILINE)
_TOKEN = re.compile(
    r'\s*(?:("(?:\\.|[^"\\\n])*")'
    r"|(0[fF][0-9a-fA-F]{8}|0[dD][0-9a-fA-F]{16}|0[xX][0-9a-fA-F]+U?|0[bB][01]+U?"
    r"|(?:\d+\.\d*|\.\d+)(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+|\d+U?)(?![\w$])"
    r"|(\.?[%$\w](?:[\w$]|::)*)"
    r"|(<<|>>|<=|>=|==|!=|&&|\|\||\S))"
)


class Token(NamedTuple):
    """A word (with the dot of a directive), number, string or sign, and where it begins. At the end ``text`` is ""."""

    text: str
    start: int


class Source:
    """A text with its comments blanked out, a position in it, and the tokens from there on.

    ``comments`` are the ``//`` comments that have a line of their own, as (position, text).
    """

    def __init__(self, text: str, filename: str) -> None:
        if text[:1] == "\ufeff":  # a mark of the byte order, which editors of Windows write
            text = " " + text[1:]
        self.original = text
        self.filename = filename
        self.comments: list[tuple[int, str]] = []
        self.text = _COMMENT.sub(self._blank, text) if re.search(r"/[/*]|#", text) else text
        self.at = 0

    def _blank(self, match: re.Match[str]) -> str:
        text = match[0]
        if text[0] == '"':
            return text
        if text.startswith("/*") and not text.endswith("*/"):
            self.fail("a comment that does not end", match.start(), hint="close it with `*/`")
        start = match.start()
        if text.startswith("//") and not self.original[self.original.rfind("\n", 0, start) + 1 : start].strip():
            comment = text[2:].strip()
            if comment:
                self.comments.append((start, comment))
        return re.sub(r"[^\n]", " ", text)

    def line(self, position: int) -> int:
        """The number, from 1, of the line of a position."""
        return self.text.count("\n", 0, position) + 1

    def fail(self, message: str, position: int, *, hint: str | None = None) -> NoReturn:
        """Raise the ParseError for what stands at a position."""
        text = self.original
        start = text.rfind("\n", 0, position) + 1
        end = text.find("\n", position)
        shown = text[start : end if end >= 0 else len(text)].rstrip().replace("\t", " ")
        indent = len(shown) - len(shown.lstrip())
        column = position - start + 1
        number = text.count("\n", 0, position) + 1
        caret = " " * (column - 1 - indent) + "^"
        raise ParseError(
            f"{message}\n    {shown[indent:]}\n    {caret}", loc=Loc(self.filename, number), hint=hint, column=column
        )

    # -- tokens

    def peek(self) -> Token:
        """The next token, which stays."""
        match = _TOKEN.match(self.text, self.at)
        if match is None:
            return Token("", len(self.text.rstrip()))
        return Token(match[match.lastindex or 0], match.start(match.lastindex or 0))

    def next(self) -> Token:
        """The next token, and go past it."""
        match = _TOKEN.match(self.text, self.at)
        if match is None:
            self.at = len(self.text)
            return Token("", len(self.text.rstrip()))
        self.at = match.end()
        return Token(match[match.lastindex or 0], match.start(match.lastindex or 0))

    def accept(self, text: str) -> bool:
        """Go past the next token if it is ``text``."""
        if self.peek().text != text:
            return False
        self.next()
        return True

    def expect(self, text: str, after: str) -> Token:
        """Go past ``text``, which has to come; ``after`` says after what."""
        token = self.next()
        if token.text != text:
            self.fail(f"expected `{text}` after {after}, not {self.quoted(token)}", token.start)
        return token

    def name(self, what: str) -> Token:
        """The next token, which has to be an identifier; ``what`` says of what."""
        token = self.next()
        if not re.match(r"[A-Za-z_$%][\w$]*$", token.text):
            self.fail(f"expected the name of {what}, not {self.quoted(token)}", token.start)
        return token

    def integer(self, what: str) -> int:
        """The next token, which has to be a whole number; ``what`` says of what."""
        negative = self.accept("-")
        token = self.next()
        try:
            value = whole(token.text)
        except ValueError:
            self.fail(f"expected {what}, a whole number, not {self.quoted(token)}", token.start)
        return -value if negative else value

    def listed(self, read: Callable[[Source], T]) -> list[T]:
        """What ``read`` reads, once or more, with commas between."""
        found = [read(self)]
        while self.accept(","):
            found.append(read(self))
        return found

    @staticmethod
    def quoted(token: Token) -> str:
        """A token as messages quote it."""
        return f"`{token.text}`" if token.text else "the end of the text"


def whole(text: str) -> int:
    """The value of an integer literal of PTX: decimal, 0x, 0b or octal, with or without U. ValueError for others."""
    digits = text[:-1] if text[-1:] == "U" else text
    if digits[:1] == "0" and digits.isdigit():
        return int(digits, 8)
    if not digits[:1].isdigit() or "_" in digits:
        raise ValueError(text)
    return int(digits, 0)
