"""A cursor over a text: what the readers of types, constants and graphs have in common."""

from __future__ import annotations

import re


class IRSyntaxError(ValueError):
    """A text that is not IR; the message has the line and what was expected there."""


class Cursor:
    """Reads `text` from `position` on. Blanks between tokens are skipped, newlines are not."""

    def __init__(self, text: str, position: int = 0, line: int | None = None) -> None:
        self.text = text
        self.position = position
        self.line = line

    def blanks(self) -> None:
        """Skips blanks."""
        while self.text.startswith(" ", self.position):
            self.position += 1

    def accept(self, token: str) -> bool:
        """Reads the token if it comes next."""
        self.blanks()
        found = self.text.startswith(token, self.position)
        if found:
            self.position += len(token)
        return found

    def expect(self, token: str) -> None:
        """Reads the token, which must come next."""
        if not self.accept(token):
            raise self.error(repr(token))

    def match(self, pattern: re.Pattern[str]) -> str | None:
        """Reads what the pattern matches; None if it matches nothing here."""
        self.blanks()
        found = pattern.match(self.text, self.position)
        if found is None:
            return None
        self.position = found.end()
        return found.group()

    def need(self, pattern: re.Pattern[str], what: str) -> str:
        """Reads what the pattern matches, which must come next."""
        found = self.match(pattern)
        if found is None:
            raise self.error(what)
        return found

    def at_end(self) -> bool:
        """Whether only blanks are left."""
        self.blanks()
        return self.position >= len(self.text)

    def error(self, what: str) -> IRSyntaxError:
        """The error that `what` was expected at the position."""
        rest = self.text[self.position :]
        got = repr(rest if len(rest) < 40 else rest[:37] + "...") if rest else "the end"
        where = f"line {self.line}, " if self.line is not None else ""
        return IRSyntaxError(f"{where}column {self.position + 1}: expected {what}, got {got}")
