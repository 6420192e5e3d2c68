"""Tables in files of any format, read in batches."""

from dsfr.io.scanning import Scan, scan

__all__ = ["Scan", "scan"]
