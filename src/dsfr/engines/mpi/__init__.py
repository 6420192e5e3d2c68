"""Engines over the ranks of an MPI job."""
