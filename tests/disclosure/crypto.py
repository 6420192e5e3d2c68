"""Tests of masks need cryptography, which is an extra."""

import pytest


def needs_cryptography():
    pytest.importorskip("cryptography", reason="secure sums need cryptography: pip install 'dsfr[federation]'")
