"""The mathematics: pure functions of arrays, numpy and scipy only.

Nothing here reads files, logs, looks at the clock, keeps state or knows how agents talk to each other.
"""
