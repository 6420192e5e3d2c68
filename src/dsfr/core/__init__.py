"""The mathematics: pure functions of arrays, numpy and scipy only.

No module here reads files, logs, reads the clock, keeps state or knows about engines.
"""
