"""Agreeing on the weights of the rules."""
