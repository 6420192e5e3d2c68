"""A model as one page that people open, read, try out and print: no network, no dependency, nothing computed twice."""

from dsfr.report.data import ReportData, data_of_table
from dsfr.report.page import render, write_report

__all__ = ["ReportData", "data_of_table", "render", "write_report"]
