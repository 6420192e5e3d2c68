"""Tables larger than memory: files and folders read batch by batch."""

from dsfr.streaming.scanning import Scan, scan

__all__ = ["Scan", "scan"]
