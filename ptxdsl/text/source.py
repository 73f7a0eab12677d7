"""The text that is parsed: its tokens, and errors at a place in it.

Comments are blanked out first, character for character, so that every later position is one in the text as it was
given, and an error can show the line with a caret below it, whether or not the text is a file that could be read again.

A text may come from anywhere, so nothing in it may cost more than its length: numbers have at most 64 bits, what nests
has a depth (`nested`), and what a few characters could ask for without end (registers, sizes) has limits of its own in
`declarations`. Every reader of a number goes through `whole`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple, NoReturn, TypeVar

from ..errors import Loc, ParseError

__all__ = ["Source", "Token"]

T = TypeVar("T")

LONGEST = 100
"""How many digits a number may have."""
SHOWN = 160
"""How many characters of a line a message shows."""
DEEPEST = 100
"""How deep parentheses and alternatives may nest."""
_ALPHABET = bytes(range(32, 127)) + b"\t\n\f\r"
_FOREIGN = re.compile(r'"(?:\\.|[^"\\\n])*"|([^\t\n\f\r -~])', re.ASCII)
"""A character that PTX does not have, outside of strings."""

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
        self.depth = self.registers = 0
        if "\0" in text or self.text.encode("utf-8", "replace").translate(None, _ALPHABET):
            self._characters()

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

    def _characters(self) -> None:
        zero = self.original.find("\0")
        at = zero if zero >= 0 else next((match.start(1) for match in _FOREIGN.finditer(self.text) if match[1]), -1)
        if at >= 0:
            name = f"U+{ord(self.original[at]):04X}"
            hint = "only comments may hold it" if zero < 0 else None
            self.fail(f"the character {name}, which PTX does not have", at, hint=hint)

    def nested(self, by: int, position: int) -> None:
        """Go so many levels deeper, or back."""
        self.depth += by
        if self.depth > DEEPEST:
            self.fail(f"an expression that nests deeper than {DEEPEST} levels", position)

    def line(self, position: int) -> int:
        """The number, from 1, of the line of a position."""
        return self.text.count("\n", 0, position) + 1

    def fail(self, message: str, position: int, *, hint: str | None = None) -> NoReturn:
        """Raise the ParseError for what stands at a position."""
        text = self.original
        message = message if len(message) <= 3 * SHOWN else f"{message[: 3 * SHOWN]}..."
        start = text.rfind("\n", 0, position) + 1
        end = text.find("\n", position)
        column = position - start + 1
        number = text.count("\n", 0, position) + 1
        whole_line = text[start : end if end >= 0 else len(text)].rstrip().replace("\t", " ").replace("\0", " ")
        cut = max(0, column - SHOWN // 2) if len(whole_line) > SHOWN else 0
        shown = whole_line[cut : cut + SHOWN]
        indent = len(shown) - len(shown.lstrip())
        caret = " " * (column - 1 - indent - cut) + "^"
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
        """The next token, which has to be a whole number, not negative; ``what`` says of what."""
        token = self.next()
        try:
            value = whole(token.text)
        except ValueError:
            self.fail(f"expected {what}, a whole number, not {self.quoted(token)}", token.start)
        if value >> 64:
            self.fail(f"{value} does not fit in 64 bits", token.start)
        return value

    def listed(self, read: Callable[[Source], T]) -> list[T]:
        """What ``read`` reads, once or more, with commas between."""
        found = [read(self)]
        while self.accept(","):
            found.append(read(self))
        return found

    @staticmethod
    def quoted(token: Token) -> str:
        """A token as messages quote it."""
        text = token.text if len(token.text) <= SHOWN else f"{token.text[:SHOWN]}..."
        return f"`{text}`" if text else "the end of the text"


def whole(text: str) -> int:
    """The value of an integer literal of PTX: decimal, 0x, 0b or octal, with or without U. ValueError for others."""
    digits = text[:-1] if text[-1:] == "U" else text
    if not digits[:1].isdigit() or "_" in digits or len(digits) > LONGEST:
        raise ValueError(text)
    return int(digits, 8 if digits[0] == "0" and digits.isdigit() else 0)
