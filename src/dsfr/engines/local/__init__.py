"""Engines whose agents are objects of this process."""
