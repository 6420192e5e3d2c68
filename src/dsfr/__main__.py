"""``python -m dsfr``."""

from dsfr.cli import main

main()
