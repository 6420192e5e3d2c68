"""Tables larger than memory: files and folders read batch by batch."""

from dsfr.io.scanning import Scan, scan

__all__ = ["Scan", "scan"]
