"""A lock excludes other processes for as long as anything in this process holds it."""

import multiprocessing
import subprocess
import sys

import pytest

from dsfr.storage.lock import FileLock, fcntl

pytestmark = pytest.mark.skipif(fcntl is None, reason="this system has no locks of files")
OTHER = "from pathlib import Path; from dsfr.storage.lock import FileLock; print(FileLock(Path('lock')).acquired)"


def another_process_acquires(folder):
    done = subprocess.run([sys.executable, "-c", OTHER], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout == "True\n"


def test_the_lock_ends_with_the_last_object_that_holds_it(tmp_path):
    first, second = FileLock(tmp_path / "lock"), FileLock(tmp_path / "lock")
    assert first.acquired
    assert second.acquired
    del first
    assert not another_process_acquires(tmp_path)
    del second
    assert another_process_acquires(tmp_path)


def test_a_new_file_under_the_same_name_has_a_lock_of_its_own(tmp_path):
    first = FileLock(tmp_path / "lock")
    (tmp_path / "lock").rename(tmp_path / "old")
    assert another_process_acquires(tmp_path)
    second = FileLock(tmp_path / "lock")
    assert not another_process_acquires(tmp_path)
    assert first.acquired
    assert second.acquired


def tell(path, told):
    told.put(FileLock(path).acquired)


def test_a_forked_process_does_not_hold_the_lock(tmp_path):
    lock = FileLock(tmp_path / "lock")
    context = multiprocessing.get_context("fork")
    told = context.SimpleQueue()
    process = context.Process(target=tell, args=(tmp_path / "lock", told))
    process.start()
    assert not told.get()
    process.join()
    assert lock.acquired
    assert not another_process_acquires(tmp_path)
