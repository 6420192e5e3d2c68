"""Measurements that are run by hand or by ``make bench``; never timed tests."""
