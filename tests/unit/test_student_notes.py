"""What is said of rules that cost much: how many would cost less, and how to get them."""

import pytest

from dsfr.core.explain.student_notes import notes_of

RECORD = {
    "is_signal": True,
    "teacher_error": 1.0,
    "teacher_members": 8,
    "teacher_weights": 611,
    "strongest_price": 0.1,
    "max_rules": 5,
}

ADVICE = "use the average where accuracy counts"


def said(price, curve, n_rules):
    entries = [{"n_rules": float(k), "price": value} for k, value in enumerate(curve, start=1)]
    return list(notes_of({**RECORD, "price": price, "curve": entries}, n_rules))[1:]


@pytest.mark.parametrize("n_rules", [1, 2])
def test_the_strongest_rule_alone_is_another_model_only_beside_others(n_rules):
    first, *_ = notes_of({**RECORD, "price": 0.01, "curve": []}, n_rules)
    assert ("answering with the strongest rule alone" in first) == (n_rules > 1)


@pytest.mark.parametrize(
    ("price", "curve", "n_rules", "expected"),
    [
        (0.05, [0.2, 0.05, 0.01], 2, []),
        (0.06, [0.2, 0.06, 0.04], 2, ["3 rules would cost 4.0%: a lower tolerance allows them."]),
        (0.2, [0.3, 0.2, 0.2, 0.2, 0.2, 0.06, 0.04], 5, ["7 rules would cost 4.0%: max_rules allows them."]),
        (0.3, [0.9, 0.5, 0.3, 0.2], 3, [f"Even 4 rules would cost 20.0%: {ADVICE}."]),
        (
            0.147,
            [0.6, 0.15, 0.147, 0.139, 0.148],
            3,
            [f"Even 4 rules would cost 13.9%: {ADVICE}."],
        ),
        (0.147, [0.6, 0.147, 0.148], 2, [f"More rules would not cost less: {ADVICE}."]),
        (0.147, [], 1, []),
    ],
)
def test_a_high_price_is_said_with_what_lowers_it(price, curve, n_rules, expected):
    assert said(price, curve, n_rules) == expected
