"""Engines over the processes of an MPI job."""
