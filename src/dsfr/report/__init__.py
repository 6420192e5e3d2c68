"""A report of a model: one HTML page that works offline and has no dependencies."""

from dsfr.report.data import ReportData, data_of_table
from dsfr.report.page import render, write_report

__all__ = ["ReportData", "data_of_table", "render", "write_report"]
