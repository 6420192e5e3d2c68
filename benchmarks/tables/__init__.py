"""Regression tables of the benchmarks of accuracy: the paper's, those that packages carry, and generated ones."""

from benchmarks.tables.catalog import GENERATED, PAPER, REAL, TABLES, load
from benchmarks.tables.draws import Draw, draw_rows
from benchmarks.tables.split import DESIGN, JUDGED, UNSEEN

__all__ = ["DESIGN", "GENERATED", "JUDGED", "PAPER", "REAL", "TABLES", "UNSEEN", "Draw", "draw_rows", "load"]
