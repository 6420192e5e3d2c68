"""Writes the table of tasks into docs/privacy.md, between its markers; run by ``make tables``."""

from pathlib import Path

from dsfr.training.tasks.catalog import privacy_table

PAGE = Path(__file__).parent / "privacy.md"
BEGIN, END = "<!-- tasks: begin -->\n", "\n<!-- tasks: end -->"


def main() -> None:
    """Replace what is between the markers."""
    before, rest = PAGE.read_text().split(BEGIN)
    after = rest.split(END.lstrip())[1]
    PAGE.write_text(before + BEGIN + privacy_table() + END + after)


if __name__ == "__main__":
    main()
