"""The option for the noise of inputs, of the commands that predict."""

from __future__ import annotations

import click

from dsfr.cli.group import BadInputError

noise_option = click.option(
    "--input-std",
    multiple=True,
    metavar="COLUMN=VALUE",
    help="Standard deviation of the noise of an input, in its units. May be repeated.",
)


def input_noise(given: tuple[str, ...], names: tuple[str, ...]) -> dict[str, float]:
    """Standard deviations of the noise of inputs, by their names."""
    noise = {}
    for text in given:
        name, _, value = text.rpartition("=")
        if name not in names:
            raise BadInputError(f"--input-std {text} must be COLUMN=VALUE, with a column of {', '.join(names)}")
        try:
            noise[name] = float(value)
        except ValueError:
            noise[name] = -1.0
        if not noise[name] >= 0.0:
            raise BadInputError(f"--input-std {text} must have a number >= 0, in the units of {name}")
    return noise
