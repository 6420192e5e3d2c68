"""Collective operations over ranks, and agreement on errors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from dsfr.engines.contract import EngineError, RefusedError

T = TypeVar("T")


class RankError(EngineError):
    """An error on one rank, raised on all ranks."""

    def __init__(self, message: str, rank: int) -> None:
        super().__init__(message)
        self.rank = rank


class RankRefusedError(RankError, RefusedError):
    """A refusal on one rank, raised on all ranks."""


class Collectives(ABC):
    """Reduce, gather and broadcast over ranks; a subclass decides which messages carry them."""

    rank: int
    size: int

    @abstractmethod
    def reduce(self, vector: npt.NDArray[Any], verb: str) -> npt.NDArray[Any]:
        """Elementwise sum or maximum of the vectors of all ranks, on all ranks."""

    @abstractmethod
    def gather(self, data: bytes) -> list[bytes]:
        """The bytes of every rank, on all ranks."""

    @abstractmethod
    def broadcast(self, text: str, root: int) -> str:
        """The text of one rank, on all ranks."""

    def agree(self, error: Exception | None, numbers: Sequence[int] = ()) -> list[bool]:
        """Raise the same error on all ranks if there is one on any; else whether each number is the same on all.

        Raises
        ------
        RankError
            Naming the first rank with an error, and the cause. Where all errors are refusals, it is a
            `RefusedError` as well.
        """
        has_failed = error is not None and not isinstance(error, RefusedError)
        state = (self.size - self.rank if error else 0, float(has_failed))
        maxima = self.reduce(np.array([*state, *numbers, *(-number for number in numbers)], dtype=float), "max")
        if maxima[0]:
            rank = self.size - int(maxima[0])
            cause = self.broadcast(describe_error(error) if error and rank == self.rank else "", rank)
            raise (RankError if maxima[1] else RankRefusedError)(f"rank {rank}: {cause}", rank) from error
        n = len(numbers)
        return [bool(high == -low) for high, low in zip(maxima[2 : 2 + n], maxima[2 + n :], strict=True)]

    def run_on_all(self, function: Callable[[], T]) -> T:
        """The result of a function on every rank, or the same error on all ranks if it fails on any."""
        result, error = None, None
        try:
            result = function()
        except Exception as caught:
            error = caught
        self.agree(error)
        return result  # type: ignore[return-value]


def describe_error(error: BaseException) -> str:
    """An error in one line: its message with its notes, after the name of its class unless the message suffices."""
    if isinstance(error, RankError):
        return str(error).removeprefix(f"rank {error.rank}: ")
    suffices = isinstance(error, (ValueError, OSError, EngineError)) and str(error)
    text = str(error) if suffices else f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return text + "".join(f" ({note})" for note in getattr(error, "__notes__", ()))
