"""Commands that write a model for readers and other programs: report, export."""

from __future__ import annotations

import click

from dsfr.cli.group import BadInputError, dialect_options, examples, guessed_dialect, main, refuse_same_file


@main.command(
    short_help="Write a page about a model, for any browser.",
    epilog=examples("dsfr report houses.dsfr -o report.html", "dsfr report houses.dsfr houses.csv -o report.html"),
)
@click.argument("model", type=click.Path(exists=True, dir_okay=False))
@click.argument("data", required=False, type=click.Path(exists=True, dir_okay=False))
@click.option("-o", "--output", default="report.html", show_default=True, metavar="FILE", help="Where the page goes.")
@dialect_options
def report(model: str, data: str | None, output: str, delimiter: str | None, decimal: str | None) -> None:
    """Write a page about MODEL that opens in any browser, offline: rules, plots, sliders, training.

    With DATA the page has histograms, typical rows, notes on the data and, if the target is there, errors.
    """
    from dsfr.cli.console import working
    from dsfr.io.tables import read_table
    from dsfr.model.model import load
    from dsfr.report import data_of_table, render
    from dsfr.storage.atomic import check_writable, replacing

    for source in (model, *([data] if data else [])):
        refuse_same_file(source, output)
    check_writable(output)
    loaded, rows = load(model), None
    marks = (",", ".") if data is None else guessed_dialect(data, delimiter, decimal)
    with working("reading and rendering"):
        if data is not None:
            rows = data_of_table(read_table(data, delimiter=marks[0]), loaded, marks[1])
        page = render(loaded, rows).encode()
    with replacing(output) as file:
        file.write(page)
    click.echo(f"{output} ({len(page) / 1e3:.0f} kB): open it in a browser", err=True)


@main.command(
    short_help="Write a model as ONNX or IEEE 1855 markup.",
    epilog=examples("dsfr export houses.dsfr -o houses.onnx", "dsfr export houses.dsfr -o houses.fml"),
)
@click.argument("model", type=click.Path(exists=True, dir_okay=False))
@click.option("-o", "--output", required=True, metavar="FILE", help="A name that ends in .onnx, .fml or .xml.")
@click.option("--double", is_flag=True, help="ONNX with double precision input and output.")
def export(model: str, output: str, double: bool) -> None:
    """Write MODEL for other programs: ONNX (needs the onnx package), or IEEE 1855 fuzzy markup."""
    from dsfr.export import check_ending
    from dsfr.export import export as write
    from dsfr.model.model import load
    from dsfr.storage.atomic import check_writable

    if check_ending(output) != ".onnx" and double:
        raise BadInputError("--double is for ONNX: leave it out, FML has no other precision")
    refuse_same_file(model, output)
    check_writable(output)
    write(load(model), output, double=double)
    click.echo(f"model in {output}", err=True)
