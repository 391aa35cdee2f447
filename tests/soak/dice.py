"""Randomness that follows from a seed.

Owns every choice of a soak. Promises the same choices for the same seed and
label, on every computer; when they are carried out is up to the clock.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import TypeVar

T = TypeVar("T")
_FRACTIONS = 2**56


class Dice:
    """See the module; `label` keeps the choices of two parts apart."""

    def __init__(self, seed: str, label: str) -> None:
        self._root = f"{seed}/{label}"
        self._count = 0

    def fraction(self) -> float:
        """From 0 up to but not including 1."""
        self._count += 1
        said = f"{self._root}/{self._count}".encode()
        digest = hashlib.blake2b(said, digest_size=7).digest()
        return int.from_bytes(digest) / _FRACTIONS

    def between(self, low: float, high: float) -> float:
        """A number of this range."""
        return low + (high - low) * self.fraction()

    def below(self, limit: int) -> int:
        """A whole number from 0 up to but not including `limit`."""
        return int(self.fraction() * limit)

    def happens(self, chance: float) -> bool:
        """True in so many cases of one."""
        return self.fraction() < chance

    def one_of(self, choices: Sequence[T]) -> T:
        """Each as likely."""
        return choices[self.below(len(choices))]

    def weighted(self, weights: Mapping[str, float]) -> str:
        """Each as likely as its weight says."""
        left = self.fraction() * sum(weights.values())
        for choice, weight in weights.items():
            left -= weight
            if left < 0:
                return choice
        return choice

    def letters(self, count: int) -> str:
        """So many harmless characters."""
        block = hashlib.blake2b(f"{self._root}/{self.fraction()}".encode()).hexdigest()
        return (block * (count // len(block) + 1))[:count]
