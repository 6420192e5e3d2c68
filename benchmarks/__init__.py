"""Measurements that are run by hand or by ``make bench``; never timed tests."""

MISSED = 3
"""Exit code of a benchmark that ran to its end and missed a target; a crash has another exit code."""
