"""Text to the numbers of tokens and back, by the vocabulary that a GGUF file holds (kind "llama": SentencePiece's pairs).

Text is cut into characters, then the two neighbours whose joined piece has the best score are joined, until none is left;
characters without a piece become bytes. Spaces are written as "▁".
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Mapping
from typing import Any

from examples.gguf_metadata import entries, entry

UNKNOWN = "tokenizer.ggml.unknown_token_id"
SPACE = "▁"
BYTE_PIECE = re.compile("<0x[0-9A-F]{2}>")
NORMAL, CONTROL, USER_DEFINED, BYTE = 1, 3, 4, 6  # kinds of pieces, as the file has them


class Tokenizer:
    """The vocabulary of a file's metadata. ValueError where it holds none of this kind."""

    def __init__(self, metadata: Mapping[str, Any]):
        if metadata.get("tokenizer.ggml.model") != "llama":
            raise ValueError(f"expected a vocabulary of kind 'llama', got {metadata.get('tokenizer.ggml.model')!r}")
        self.pieces: list[str] = entries(metadata, "tokenizer.ggml.tokens", str)
        count = len(self.pieces)
        self.scores: list[float] = entries(metadata, "tokenizer.ggml.scores", float, count)
        self.kinds: list[int] = entries(metadata, "tokenizer.ggml.token_type", int, count)
        marks = [entry(metadata, f"tokenizer.ggml.{name}_token_id", int, 0, count - 1) for name in ("bos", "eos")]
        self.begin, self.end = marks
        self.unknown = entry({UNKNOWN: 0} | dict(metadata), UNKNOWN, int, 0, count - 1)
        self.adds_begin = metadata.get("tokenizer.ggml.add_bos_token", True)
        self.adds_space = metadata.get("tokenizer.ggml.add_space_prefix", True)
        self._numbers = {piece: number for number, piece in enumerate(self.pieces)}
        special = [piece for piece, kind in zip(self.pieces, self.kinds, strict=True) if kind in (CONTROL, USER_DEFINED)]
        self._special = re.compile("(" + "|".join(map(re.escape, sorted(special, key=len, reverse=True))) + ")")

    def encode(self, text: str, begin: bool = True, special: bool = True) -> list[int]:
        """The tokens of a text.

        Args:
            text: any text.
            begin: whether it begins a text: the token for that comes first, where the vocabulary asks for it.
            special: whether names of special tokens in it, such as "<start_of_turn>", stand for these.
        """
        found = [self.begin] if begin and self.adds_begin else []
        for place, part in enumerate(self._special.split(text) if special else [text]):
            if place % 2:
                found.append(self._numbers[part])
            elif part:
                found += self._joined((" " if self.adds_space and begin and place == 0 else "") + part)
        return found

    def _joined(self, text: str) -> list[int]:
        """The tokens of a text without special ones."""
        parts: list[str] = list(text.replace(" ", SPACE))
        before, after = list(range(-1, len(parts) - 1)), list(range(1, len(parts) + 1))
        queue: list[tuple[float, int, int, int]] = []

        def offer(left: int, right: int) -> None:
            if left >= 0 and right < len(parts):
                number = self._numbers.get(parts[left] + parts[right])
                if number is not None and self.kinds[number] != CONTROL:
                    heapq.heappush(queue, (-self.scores[number], left, right, len(parts[left]) + len(parts[right])))

        for place in range(len(parts) - 1):
            offer(place, place + 1)
        while queue:
            _, left, right, length = heapq.heappop(queue)
            if not parts[left] or not parts[right] or len(parts[left]) + len(parts[right]) != length or after[left] != right:
                continue  # one of them has been joined with another since
            parts[left], parts[right] = parts[left] + parts[right], ""
            after[left] = after[right]
            if after[left] < len(parts):
                before[after[left]] = left
            offer(before[left], left)
            offer(left, after[left])
        return [number for part in parts if part for number in self._numbers_of(part)]

    def _numbers_of(self, piece: str) -> Iterable[int]:
        number = self._numbers.get(piece)
        if number is not None:
            return [number]
        return [self._numbers.get(f"<0x{byte:02X}>", self.unknown) for byte in piece.encode()]

    def content(self, token: int) -> bytes:
        """The bytes of a token, which may be a part of a character; a control token has none.

        IndexError for a number that is no token's.
        """
        if not 0 <= token < len(self.pieces):
            raise IndexError(f"there is no token {token}: the vocabulary has {len(self.pieces)}")
        piece, kind = self.pieces[token], self.kinds[token]
        if kind == BYTE and BYTE_PIECE.fullmatch(piece):
            return bytes.fromhex(piece[3:5])
        return b"" if kind == CONTROL else piece.replace(SPACE, " ").encode()

    def decode(self, numbers: Iterable[int]) -> str:
        """The text of tokens; control tokens have none. IndexError for a number that is none."""
        return b"".join(map(self.content, numbers)).decode("utf-8", "replace")
