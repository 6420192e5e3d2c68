"""Data sets: location, checksums, downloads, the artificial set; hidden labels and partitions of rows."""

import gzip
import io
import json
import os
import sys
import tarfile
import zipfile
from pathlib import Path
from urllib.error import URLError

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from dsfr.cli import main
from dsfr.paper import datasets
from dsfr.paper.datasets import CATALOG, DatasetError, downloads, loading
from dsfr.paper.datasets.loading import load_values, locate, values_sha256

HOME = os.environ.get("DSFR_DATA_HOME")
needs_data = pytest.mark.skipif(not HOME, reason="DSFR_DATA_HOME does not name the folder of the data sets")
seeds = st.integers(0, 10_000)


@pytest.fixture
def no_data(monkeypatch, tmp_path):
    """Neither a data home nor a cached data set."""
    monkeypatch.delenv("DSFR_DATA_HOME", raising=False)
    monkeypatch.setenv("DSFR_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


@needs_data
@pytest.mark.parametrize("name", CATALOG)
def test_a_data_set_has_the_columns_and_rows_of_the_catalog(name):
    source, frame = CATALOG[name], datasets.load(name)
    assert isinstance(frame, pd.DataFrame)
    assert frame.shape == (source.n_rows, source.n_features + 1)
    assert tuple(frame.columns) == source.columns
    assert locate(name).kind == "home"
    values = load_values(name)
    np.testing.assert_array_equal(np.column_stack([values.X, values.y]), frame)


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(DatasetError, match=r"unknown data set 'airfoi': it must be one of airfoil, .*artificial"):
        load_values("airfoi")


@needs_data
def test_a_file_that_is_not_the_published_one_is_refused(monkeypatch, tmp_path):
    data = gzip.decompress(locate("airfoil").path.read_bytes())
    (tmp_path / "airfoil.csv.gz").write_bytes(gzip.compress(data.replace(b"126.201", b"126.202")))
    monkeypatch.setenv("DSFR_DATA_HOME", str(tmp_path))
    with pytest.raises(DatasetError, match="is not the published file: its sha256 is"):
        load_values("airfoil")


@pytest.mark.parametrize(
    "content",
    [b"", b"no gzip", gzip.compress(b"a,b\n1,2\n", mtime=0), gzip.compress(b"\xff\xfe,1\n", mtime=0)[:-4]],
    ids=["empty", "no gzip", "other columns", "cut"],
)
def test_a_damaged_cache_is_refused(no_data, content):
    loading.cache_folder().mkdir()
    (loading.cache_folder() / "airfoil.csv.gz").write_bytes(content)
    with pytest.raises(DatasetError, match=r"is damaged.*: delete it to have the data set downloaded again"):
        load_values("airfoil")


@needs_data
def test_a_cache_with_one_changed_value_is_refused(no_data):
    values = published("airfoil")
    load_values("airfoil", fetch=lambda _: as_text(values))
    path = locate("airfoil").path
    path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes()).replace(b"126.201", b"126.202")))
    with pytest.raises(DatasetError, match="is damaged"):
        load_values("airfoil")


def test_an_unreachable_source_is_an_error_with_a_remedy(no_data):
    def unreachable(url):
        raise URLError("Name or service not known")

    with pytest.raises(
        DatasetError,
        match=r"cannot be reached \(Name or service not known\).*set .* DSFR_DATA_HOME to it",
    ):
        load_values("kch", fetch=unreachable)


@pytest.mark.parametrize("name", CATALOG)
@pytest.mark.parametrize(
    "answer", [b"", b"<html>moved</html>", b"1 2 3\n", b'{"error": "gone"}', b"PK\x05\x06" + b"\0" * 18]
)
def test_a_source_that_has_changed_is_refused(no_data, name, answer):
    with pytest.raises(DatasetError, match="does not hold"):
        load_values(name, fetch=lambda _: answer)
    assert not (no_data / "cache").exists() or not list((no_data / "cache").iterdir())


@needs_data
@pytest.mark.parametrize("name", CATALOG)
def test_a_download_is_checked_cached_and_equal_to_the_file(no_data, name):
    values = published(name)
    responses = responses_of(name, values)
    asked = []

    def fetch(url):
        asked.append(url)
        return responses[len(asked) - 1]

    first = load_values(name, fetch=fetch)
    assert asked[0] == CATALOG[name].url
    assert locate(name).kind == "cache"
    second = load_values(name, fetch=lambda _: pytest.fail("the cache was there"))
    for loaded in (first, second):
        np.testing.assert_array_equal(np.column_stack([loaded.X, loaded.y]), values)


def published(name):
    """Values of the file in the data home."""
    return np.loadtxt(Path(HOME) / f"{name}.csv.gz", delimiter=",", skiprows=1)


def as_text(values):
    return "\n".join("\t".join(map(repr, row)) for row in values.tolist()).encode()


def responses_of(name, values):
    """Responses of the public source, in its file format."""
    columns = CATALOG[name].columns
    if name == "airfoil":
        return [as_text(values)]
    if name == "wmsl":
        rows = [["GameID", *columns], *([i, *row] for i, row in enumerate(values.tolist()))]
        rows.insert(5, [0, *["?"] * len(columns)])
        return ["\n".join(",".join(f'"{cell}"' for cell in row) for row in rows).encode()]
    if name == "ccpp":
        return [zipped("CCPP/Folds5x2_pp.xlsx", workbook(columns, values))]
    if name == "ch":
        text = "\n".join(",".join(map(repr, row)) for row in values.tolist()).encode()
        stream = io.BytesIO()
        with tarfile.open(fileobj=stream, mode="w:gz") as archive:
            info = tarfile.TarInfo("CaliforniaHousing/cal_housing.data")
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text))
        return [stream.getvalue()]
    table = pa.table({"id": pa.array(range(len(values))), **{c: values[:, j] for j, c in enumerate(columns)}})
    text = pa.array([f"{value:g}" for value in values[:, 5]])
    table = table.set_column(6, "waterfront", text.dictionary_encode())
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return [json.dumps({"data_set_description": {"parquet_url": "https://elsewhere"}}).encode(), sink.getvalue()]


def zipped(name, content):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(name, content)
    return stream.getvalue()


def workbook(columns, values):
    namespace = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    strings = "".join(f"<si><t>{column}</t></si>" for column in columns)
    letters = "ABCDE"
    header = "".join(f'<c r="{letters[j]}1" t="s"><v>{j}</v></c>' for j in range(5))
    body = "".join(
        "<row>" + "".join(f'<c r="{letters[j]}{i + 2}"><v>{cell!r}</v></c>' for j, cell in enumerate(row)) + "</row>"
        for i, row in enumerate(values.tolist())
    )
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("xl/sharedStrings.xml", f"<sst {namespace}>{strings}</sst>")
        sheet = f"<worksheet {namespace}><sheetData><row>{header}</row>{body}</sheetData></worksheet>"
        archive.writestr("xl/worksheets/sheet1.xml", sheet)
    return stream.getvalue()


def test_the_checksum_depends_on_values_and_not_on_memory_layout():
    values = np.array([[1.0, -0.0], [2.5, 3.0]])
    assert values_sha256(values) == values_sha256(np.asfortranarray(np.abs(values)))
    assert values_sha256(values) != values_sha256(values.T)


def test_every_file_format_has_a_reader():
    assert {dataset.file_format for dataset in CATALOG.values()} == set(downloads.READERS)


def test_the_artificial_set_has_the_distribution_of_the_paper():
    X, y = datasets.make_artificial()
    clean = datasets.make_artificial(noise=False)[1]
    assert X.shape == (5000, 8)
    np.testing.assert_allclose(X.mean(axis=0), 0.5 * np.arange(8), atol=0.1)
    np.testing.assert_allclose(X.std(axis=0), 0.2 * np.arange(1, 9), rtol=0.05)
    np.testing.assert_allclose(clean, 0.3 * (X**2).sum(axis=1) + 0.7 * np.cos(X).sum(axis=1))
    added, unit = y - clean, np.ptp(clean)
    small, large = (added != 0) & (added < 0.55 * unit), added >= 0.55 * unit
    assert (small.sum(), large.sum()) == (250, 500)
    assert abs(added[small].mean() / unit - 0.1) < 0.02
    assert abs(added[large].mean() / unit - 1.0) < 0.02
    np.testing.assert_array_equal(datasets.load("artificial").to_numpy(), np.column_stack([X, y]))
    assert not np.array_equal(datasets.make_artificial(seed=1)[1], y)


@given(seed=seeds, n_rows=st.integers(1, 60), data=st.data())
def test_every_partition_gives_every_agent_a_row(seed, n_rows, data):
    n_agents = data.draw(st.integers(1, n_rows))
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, 2))
    values = rng.permutation(np.concatenate([np.arange(n_agents), rng.integers(0, n_agents, n_rows - n_agents)]))
    for owners in (
        datasets.split_evenly(n_rows, n_agents, rng),
        datasets.split_by_column(values, n_agents),
        datasets.split_by_cluster(X, n_agents, rng),
        datasets.split_by_dirichlet(n_rows, n_agents, 0.3, rng),
    ):
        assert owners.shape == (n_rows,)
        assert sorted(set(owners.tolist())) == list(range(n_agents))


@given(seed=seeds, n_agents=st.integers(1, 5))
def test_split_by_column_keeps_equal_values_together_and_ranges_ordered(seed, n_agents):
    values = np.random.default_rng(seed).integers(0, 8, 100)
    owners = datasets.split_by_column(values, min(n_agents, len(np.unique(values))))
    order = np.argsort(values, kind="stable")
    assert (np.diff(owners[order]) >= 0).all()
    assert all(len(set(owners[values == value])) == 1 for value in np.unique(values))


@given(seed=seeds, n_labels=st.integers(1, 30), n_agents=st.integers(1, 6))
def test_labels_are_divided_as_evenly_as_the_rows_allow(seed, n_labels, n_agents):
    rng = np.random.default_rng(seed)
    owners = datasets.split_by_dirichlet(40, n_agents, 0.5, rng)
    y = rng.standard_normal(40)
    hidden = datasets.hide_labels_by_agent(y, owners, n_labels, rng)
    known = ~np.isnan(hidden)
    assert known.sum() == n_labels
    np.testing.assert_array_equal(hidden[known], y[known])
    counts, sizes = np.bincount(owners[known], minlength=n_agents), np.bincount(owners)
    assert all(counts[a] == sizes[a] or counts[a] >= counts.max() - 1 for a in range(n_agents))


def test_invalid_arguments_of_partitions_raise(rng):
    with pytest.raises(ValueError, match="n_agents=3 must be 1 to 2, the number of distinct values"):
        datasets.split_by_column([1, 1, 2], 3)
    with pytest.raises(ValueError, match="n_agents=0 must be 1 to n_samples=2"):
        datasets.split_by_cluster([[1.0], [2.0]], 0, rng)
    with pytest.raises(ValueError, match="concentration=0 must be a number > 0"):
        datasets.split_by_dirichlet(10, 2, 0, rng)
    with pytest.raises(ValueError, match="n_rows=0 must be"):
        datasets.make_artificial(0)
    with pytest.raises(ValueError, match="agents has 2 entries for 3 rows"):
        datasets.hide_labels_by_agent([1.0, 2.0, 3.0], [0, 1], 1, rng)
    with pytest.raises(ValueError, match="n_labels=9 must be 1 to 3"):
        datasets.hide_labels_by_agent([1.0, 2.0, 3.0], [0, 1, 1], 9, rng)


def test_split_by_cluster_gives_every_cluster_to_one_agent():
    rng = np.random.default_rng(0)
    centers = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]])
    kind = rng.integers(0, 3, 90)
    owners = datasets.split_by_cluster(centers[kind] + 0.1 * rng.standard_normal((90, 2)), 3, rng)
    assert all(len(set(owners[kind == k])) == 1 for k in range(3))


def test_the_command_lists_all_data_sets(no_data):
    result = CliRunner().invoke(main, ["datasets"])
    assert result.exit_code == 0
    for name in (*CATALOG, "artificial"):
        assert name in result.output
    assert "no, will be downloaded" in result.output
    assert "21613" in result.output


def test_data_frames_without_pandas_raise_with_a_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"pip install 'dsfr\[reproduce\]'"):
        datasets.load("artificial")
