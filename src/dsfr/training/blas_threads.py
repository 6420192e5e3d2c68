"""One BLAS thread where matrices are small: waking more costs more than they do, above all on a busy machine."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from threadpoolctl import ThreadpoolController


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Run the products of a clustering or consensus round on one thread."""
    with _controller().limit(limits=1, user_api="blas"):
        yield


@cache
def _controller() -> ThreadpoolController:
    """Finding the libraries takes milliseconds, so it is done once."""
    return ThreadpoolController()
