"""Agreeing on clusters."""
