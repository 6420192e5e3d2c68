"""A lead hears who has left before a job could start."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("nvflare", reason="federations need NVFlare: pip install 'dsfr[federation]'")

from dsfr.federation.session import HEARD_SECONDS, START_SECONDS, _Start, present


@given(st.dictionaries(st.sampled_from("abcde"), st.integers(0, 200)), st.integers(0, 10**9))
def test_owners_are_present_as_long_as_others_by_whatever_clock(heard, offset):
    found = present(heard)
    assert found == sorted(name for name in heard if max(heard.values()) - heard[name] <= HEARD_SECONDS)
    assert present({name: last + offset for name, last in heard.items()}) == found


@pytest.mark.parametrize(("seconds", "expected"), [(0.0, []), (START_SECONDS - 1.0, []), (START_SECONDS, ["b", "c"])])
def test_owners_that_are_not_heard_while_a_job_waits_are_missing(seconds, expected):
    """One was heard again; another was not, and a third was never there."""
    now = [100.0]
    start = _Start(["a", "b", "c"], clock=lambda: now[0])
    assert start.missing({"a": 5.0, "b": 7.0}) == []
    now[0] += seconds
    assert start.missing({"a": 15.0, "b": 7.0}) == expected
    assert start.found == expected


def test_a_late_first_look_finds_nobody_missing():
    now = [100.0]
    start = _Start(["a"], clock=lambda: now[0])
    now[0] += 2.0 * START_SECONDS
    assert start.missing({"a": 5.0}) == []
