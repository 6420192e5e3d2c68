"""Symbols in the shapes of messages: their largest values, and formulas in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from dsfr.core.relevance.polynomial import MOST_TERMS, Polynomial

MOST_MODELS = 30
"""Rule bases of an ensemble at most."""
MAX_WEIGHTS = 5000
"""Systems of more weights would take more than 0.2 GB each, several times at every agent."""
OF_EFFECTS = ("singles", "pairs", "triples", "levels")
"""Symbols of which each is a number of weights of one member."""
MOST = {"d": 1_000_000, "k": MAX_WEIGHTS, "h": MAX_WEIGHTS, "p": MAX_WEIGHTS, "m": MOST_MODELS, "c": 64}
MOST |= {"knots": 256, "curves": 16, **dict.fromkeys(OF_EFFECTS, MAX_WEIGHTS)}
MOST |= {"r": 64, "s": 65, "e": 10_000, "g": 10_000, "l": 2**17, "b": 2**40, "w": 64}
MOST |= {"n": 2**40, "v": 64, "u": 64, "f": 64, "x": 64, "z": 64}
"""Largest value of every free symbol: features, rules, hidden nodes, weights, members of an ensemble, candidates; knots
and curves of a feature, effects of single features, products of two and of three, levels; rounds that acceleration
combines or agents remember, errors that an agent keeps, labelled rows that are left out in groups, places in a table of
hashes, bytes with a bit for every row, letters of a name; rows, ramps of linguistic terms, features of lines, features
that rules are split along, rules whose splits are evaluated, and numbers of rules that are compared."""
OF_MEMBERS = ("k", "p", "knots", "curves", *OF_EFFECTS)
"""Symbols of which every member of an ensemble has its own."""
MAY_BE_EMPTY = ("e", "g", "n", "v", "curves", *OF_EFFECTS)
"""Symbols that may be 0."""
Sizes: TypeAlias = dict[str, int]
"""Values of the symbols that are known so far."""
Shape: TypeAlias = tuple[int | str, ...]


def size_of(symbol: int | str, sizes: Mapping[str, int]) -> int | None:
    """Value of a symbol or of a formula in symbols; None while it is free."""
    if isinstance(symbol, int):
        return symbol
    if symbol in sizes:
        return sizes[symbol]
    name, _, member = symbol.partition("_")
    if name == "p":
        return _weights(sizes, f"_{member}" if member else "")
    formula = _FORMULAS.get(symbol)
    if formula is None:
        return None
    known = [size_of(part, sizes) for part in formula[0]]
    return None if None in known else formula[1](*known)


def largest_sizes(n_features: int) -> Sizes:
    """The largest value of every symbol for so many features."""
    rules = max(MAX_WEIGHTS // (n_features + 1), 1)
    sizes = {**MOST, "d": n_features, "k": rules}
    members = range(MOST_MODELS)
    return sizes | {f"{name}_{i}": sizes[name] for name in OF_MEMBERS for i in members}


def _weights(sizes: Mapping[str, int], member: str) -> int | None:
    """Weights of a basis: of rules k(d + 1), of hidden nodes and effects one each, and one of the constant effect."""
    if f"h{member}" in sizes:
        return sizes[f"h{member}"]
    if f"singles{member}" in sizes or f"pairs{member}" in sizes:
        singles, pairs = sizes.get(f"singles{member}"), sizes.get(f"pairs{member}")
        others = (sizes.get(f"{name}{member}", 0) for name in OF_EFFECTS[2:])
        return None if singles is None or pairs is None else 1 + singles + pairs + sum(others)
    rules, features = sizes.get(f"k{member}"), sizes.get("d")
    return None if rules is None or features is None else rules * (features + 1)


def _terms(n_features: int) -> int:
    polynomial = Polynomial.of(n_features) if n_features <= MOST_TERMS else None
    return 0 if polynomial is None else polynomial.n_outputs


_FORMULAS: dict[str, tuple[tuple[str, ...], Callable[..., int]]] = {
    "d+1": (("d",), lambda d: d + 1),
    "d(d+1)/2": (("d",), lambda d: d * (d + 1) // 2),
    "2kd": (("k", "d"), lambda k, d: 2 * k * d),
    "p(p+1)/2": (("p",), lambda p: p * (p + 1) // 2),
    "t": (("d",), _terms),
    "t(t+1)/2": (("t",), lambda t: t * (t + 1) // 2),
    "r+1": (("r",), lambda r: r + 1),
    "u+1": (("u",), lambda u: u + 1),
    "k(d+1)": (("k", "d"), lambda k, d: k * (d + 1)),
    "d+2": (("d",), lambda d: d + 2),
    "2d+2": (("d",), lambda d: 2 * d + 2),
    "(2d+2)(2d+3)/2": (("d",), lambda d: (2 * d + 2) * (2 * d + 3) // 2),
    "(d+1)(d+2)/2": (("d",), lambda d: (d + 1) * (d + 2) // 2),
    "(p+1)(p+2)/2": (("p",), lambda p: (p + 1) * (p + 2) // 2),
    "(d+2)(d+3)/2": (("d",), lambda d: (d + 2) * (d + 3) // 2),
    "(u+2)(u+3)/2": (("u",), lambda u: (u + 2) * (u + 3) // 2),
    "10u+2": (("u",), lambda u: 10 * u + 2),
    "(10u+2)(10u+3)/2": (("u",), lambda u: (10 * u + 2) * (10 * u + 3) // 2),
    "k(u+1)+1": (("k", "u"), lambda k, u: k * (u + 1) + 1),
    "c(c+1)/2": (("k(u+1)+1",), lambda c: c * (c + 1) // 2),
}
"""Formulas that shapes may have; t is the number of terms of the polynomial in d features, and c the
number of columns of rules with u features in their lines, and of the teacher."""


def most_of(symbol: str, sizes: Sizes) -> int:
    """Largest value of a free symbol: so many rules or effects that their weights are not too many."""
    name, _, member = symbol.partition("_")
    if name in OF_EFFECTS:
        others = (f"{other}_{member}" if member else other for other in OF_EFFECTS if other != name)
        return MAX_WEIGHTS - sum(sizes.get(other, 0) for other in others)
    return max(MAX_WEIGHTS // (sizes["d"] + 1), 1) if name == "k" and "d" in sizes else MOST.get(name, MAX_WEIGHTS**2)


def contradiction(sizes: Sizes) -> str | None:
    """Rules and weights that do not belong to each other, or None."""
    for symbol in [symbol for symbol in sizes if symbol.partition("_")[0] == "p"]:
        _, _, member = symbol.partition("_")
        expected = _weights(sizes, f"_{member}" if member else "")
        if expected is not None and expected != sizes[symbol]:
            return f"arrays are of {sizes[symbol]} weights, and their basis has {expected}"
    return None
