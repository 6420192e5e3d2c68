"""Sums over oversubscribed ranks through sockets, with threads instead of ranks."""

import os
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsfr.engines import EngineError
from dsfr.engines.mpi import oversubscribed as module
from dsfr.engines.mpi.oversubscribed import NO_FOLDER, SocketReduction

FIRST = 7
"""Number of the first rank of this machine."""


def make_reductions(size, progress=lambda: None):
    """The reduction of each rank."""
    shared, ready = [], Barrier(size)

    def share(path):
        if path:
            shared.append(path)
        ready.wait(timeout=20)
        return shared[0] if shared else ""

    def make(rank):
        return SocketReduction(FIRST + rank, FIRST, size, share, lambda vector, verb: vector, progress)

    return on_ranks(size, make)


def on_ranks(size, work):
    with ThreadPoolExecutor(size) as pool:
        return [one.result(timeout=20) for one in [pool.submit(work, rank) for rank in range(size)]]


@settings(max_examples=25)
@given(st.integers(1, 6), st.lists(st.integers(0, 60_000), min_size=1, max_size=4), st.sampled_from(["sum", "max"]))
def test_all_ranks_get_the_same_bits_added_in_their_order(size, lengths, verb):
    parts = [[np.random.default_rng([rank, n]).normal(size=n) for n in lengths] for rank in range(size)]
    together = make_reductions(size)
    found = on_ranks(size, lambda rank: [together[rank].reduce(part, verb) for part in parts[rank]])
    for number in range(len(lengths)):
        expected = parts[0][number]
        for rank in range(1, size):
            expected = {"sum": np.add, "max": np.maximum}[verb](expected, parts[rank][number])
        for rank in range(size):
            np.testing.assert_array_equal(found[rank][number], expected)
    for one in together:
        one.close()


@pytest.mark.parametrize("lengths", [(3, 5), (5, 3), (100_000, 5), (5, 100_000)])
def test_vectors_of_different_lengths_are_an_error_and_do_not_hang(lengths):
    together = make_reductions(2)

    def reduce(rank):
        try:
            together[rank].reduce(np.ones(lengths[rank]), "sum")
        except EngineError as error:
            together[rank].close()
            return str(error)

    leader, other = on_ranks(2, reduce)
    assert leader == f"ranks add vectors of {lengths[1]} and {lengths[0]} numbers: give all the same settings"
    assert other == "rank 7 is gone: it was killed, or has failed"


def test_a_rank_that_is_gone_is_an_error_on_both_sides():
    for gone, waiting in ((0, 1), (1, 0)):
        together = make_reductions(2)
        together[gone].close()
        with pytest.raises(EngineError, match=f"rank {FIRST + gone} is gone: it was killed, or has failed"):
            together[waiting].reduce(np.ones(3), "sum")
        together[waiting].close()


def test_a_waiting_rank_lets_mpi_progress():
    looks = []
    together = make_reductions(2, progress=lambda: looks.append(1))

    def reduce(rank):
        if rank == 1:
            for _ in range(2000):  # late, until the other has looked often enough
                if len(looks) > 3:
                    break
                module.time.sleep(0.005)
        return together[rank].reduce(np.ones(2), "sum").tolist()

    assert on_ranks(2, reduce) == [[2.0, 2.0]] * 2
    assert len(looks) > 3
    for one in together:
        one.close()


def test_no_file_is_left(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "mkdtemp", lambda prefix, dir: os.fspath(tmp_path / "met") if make(tmp_path) else "")
    for one in make_reductions(3):
        one.close()
    assert list(tmp_path.iterdir()) == []


def make(folder):
    (folder / "met").mkdir()
    return True


def test_no_folder_for_a_socket_is_an_error_on_all_ranks(monkeypatch):
    def full(prefix, dir):
        raise OSError("no space left on device")

    monkeypatch.setattr(module, "mkdtemp", full)
    with pytest.raises(EngineError, match=NO_FOLDER):
        make_reductions(3)
