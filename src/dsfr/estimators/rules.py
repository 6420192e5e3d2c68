"""The recommended estimator: few short rules that are the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from dsfr.core.explain.card import Card
from dsfr.core.prediction.mixture import Mixture
from dsfr.engines import Engine
from dsfr.estimators.auto import AutoSFRRegressor
from dsfr.estimators.base import DistributedRegressor
from dsfr.estimators.edits import edits_of, words_of
from dsfr.estimators.engines import EngineChoice
from dsfr.estimators.parameters import NOT_SETTINGS
from dsfr.estimators.sfr import SFRRegressor
from dsfr.model.model import Model
from dsfr.training import Settings, Training
from dsfr.training.distillation.distill import distill
from dsfr.training.distillation.settings import StudentSettings

OWN = ("max_rules", "max_conditions", "max_terms", "tolerance")
"""Parameters of the student."""


class RuleRegressor(DistributedRegressor):
    """At most a few short rules, distilled from a trained teacher on all rows: what is printed is what predicts.

    The teacher is trained first. Rules are then grown on its predictions of all rows, labelled or not: a rule is split
    along one feature into "low" and "high" where that brings the rules' lines closest to the teacher. Lines are fitted
    rule by rule, terms that do not pay are dropped, and numbers are rounded in the model itself.

    Parameters
    ----------
    max_rules : int, default=5
        Most rules. The number is that whose rules are worth reading, see ``tolerance``.
    max_conditions : int, default=3
        Most conditions of a rule.
    max_terms : int, default=None
        Most features in the line of a rule; None: those that pay.
    tolerance : float, default=None
        What a condition, a term or an end of a word must save of the expected error, as a part of it, to be worth
        reading. A larger one makes shorter rules, 0 the most accurate ones. None: 0.15 over the number of labels,
        0.003 for 50, but 0.02 at most and 0.0015 at least.
    edits : mapping, default=None
        Prescriptions by the name of a feature, each a mapping with any of ``condition`` (False: no rule has a condition
        on it), ``thresholds`` (pairs of numbers: where ramps between its terms start and end), ``slope`` ("+", "-" or
        "0": sign of its slope in all lines) and ``words`` (names of its terms, from low to high). Of a category, named
        by its column, ``condition`` and the slope "0" hold for all levels.
    teacher : AutoSFRRegressor or SFRRegressor, default=None
        The model to reproduce; None: ``AutoSFRRegressor()``. Where and how rows are kept (``n_agents``, ``engine``,
        ``precision``, ``on_round``, ``random_state``) is said here and not there.
    n_agents, engine, precision, on_round, random_state
        As in `SFRRegressor`.

    Attributes
    ----------
    model_ : Model
        The rules, which predict.
    rules_ : Card
        The rules as text; printing it shows the whole model.
    teacher_ : AutoSFRRegressor or SFRRegressor
        The trained teacher.
    complexity_ : dict
        Rules, conditions, terms of lines (those that all rules share once), words and how distinguishable these are;
        coverage of the rules, overlap, fidelity and price.
    curve_ : list of dict
        For every number of rules: distance to the teacher (mean square, in variances of the target), expected price,
        conditions and terms to read, and leave-one-out error on the labels.
    n_rounds_, history_, ledger_, termination_, agents_, present_, n_features_in_, feature_names_in_
        As in `SFRRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> from dsfr import RuleRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 10, (500, 2))
    >>> y = np.where(X[:, 0] < 5, 2 * X[:, 0], 10 + 0 * X[:, 0])
    >>> y[60:] = np.nan  # 60 labelled rows, 440 unlabelled
    >>> model = RuleRegressor(max_rules=3, random_state=0).fit(X, y)
    >>> 2 <= len(model.rules_) <= 3
    True
    """

    def __init__(
        self,
        max_rules: int = 5,
        *,
        max_conditions: int = 3,
        max_terms: int | None = None,
        tolerance: float | None = None,
        edits: Mapping[str, Mapping[str, Any]] | None = None,
        teacher: SFRRegressor | None = None,
        n_agents: int = 1,
        engine: str | EngineChoice = "in-process",
        precision: str = "double",
        on_round: Any = None,
        random_state: Any = None,
    ) -> None:
        self.max_rules = max_rules
        self.max_conditions = max_conditions
        self.max_terms = max_terms
        self.tolerance = tolerance
        self.edits = edits
        self.teacher = teacher
        self.n_agents = n_agents
        self.engine = engine
        self.precision = precision
        self.on_round = on_round
        self.random_state = random_state

    @property
    def rules_(self) -> Card:
        """The rules as text that is the model."""
        check_is_fitted(self, "model_")
        card = self.model_.explain()
        assert isinstance(card, Card)
        return card

    @property
    def complexity_(self) -> dict[str, Any]:
        """How much there is to read, and how well it reproduces the teacher.

        Without ``strongest_price`` where sums alone leave the owners: what the strongest rule alone costs is not known.
        """
        record = self._record()
        names = ("coverage", "overlap", "fidelity", "price", "strongest_price")
        return self.rules_.complexity() | {name: record[name] for name in names if record[name] is not None}

    @property
    def curve_(self) -> list[dict[str, float]]:
        """Price by number of rules."""
        return list(self._record()["curve"])

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name; with ``deep``, also those of engine and teacher, such as ``teacher__n_rules``."""
        params = super().get_params(deep)
        if deep and isinstance(self.teacher, SFRRegressor):  # anything else is refused when it is used
            params |= {f"teacher__{name}": value for name, value in self.teacher.get_params().items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters; ``teacher__n_rules=7`` changes the teacher, which is made if there is none."""
        nested = {name: params.pop(name) for name in list(params) if name.startswith("teacher__")}
        super().set_params(**params)
        if nested:
            self.teacher = AutoSFRRegressor() if self.teacher is None else self.teacher
            self.teacher.set_params(**{name.removeprefix("teacher__"): value for name, value in nested.items()})
        return self

    def stored_parameters(self, random_state: int) -> dict[str, Any]:
        """The class and its parameters as JSON holds them; those of the teacher if one is given."""
        plain = clone(self).set_params(teacher=None, edits=None)
        stored = super(RuleRegressor, plain).stored_parameters(random_state)
        teacher = None if self.teacher is None else self.teacher.stored_parameters(random_state)
        edits = None if self.edits is None else {name: dict(entry) for name, entry in self.edits.items()}
        return stored | {"teacher": teacher, "edits": edits}

    def update(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Not possible: rules are distilled from the teacher on all rows of the training, which are not kept.

        Raises
        ------
        NotImplementedError
            Always. ``teacher_.update(X, y)`` gives the teacher more labels; `fit` makes new rules.
        """
        raise NotImplementedError(
            "RuleRegressor cannot be updated: its rules are made from the teacher's predictions of all rows, which are "
            "not kept. Call fit with all rows, or teacher_.update(X, y) for a model that predicts with the new labels"
        )

    def _record(self) -> dict[str, Any]:
        check_is_fitted(self, "model_")
        return dict(self.model_.training["student"])

    def _checked_teacher(self) -> SFRRegressor:
        """A copy of the teacher with its own parameters alone.

        Raises
        ------
        ValueError
            If it is no regressor with rules, or says where rows are kept.
        """
        teacher = AutoSFRRegressor() if self.teacher is None else self.teacher
        if not isinstance(teacher, SFRRegressor):
            raise ValueError(f"teacher={teacher!r} must be an AutoSFRRegressor or SFRRegressor, or None for the former")
        usual = type(teacher)().get_params(deep=False)
        for name in sorted(NOT_SETTINGS):
            if getattr(teacher, name) != usual[name]:
                raise ValueError(
                    f"teacher has {name}={getattr(teacher, name)!r}: give {name} to RuleRegressor, which trains both"
                )
        copied: SFRRegressor = clone(teacher)
        return copied

    def _settings(self, seed: int) -> Settings:
        StudentSettings(**{name: getattr(self, name) for name in OWN})  # refuses what is wrong before anything runs
        return self._checked_teacher().settings(seed)

    def _train(self, engine: Engine, settings: Settings) -> Training:
        edits = edits_of(self.edits, self._schema)
        given = {name: getattr(self, name) for name in OWN}
        own = StudentSettings(**given, edits=edits, categories=self._schema.complete_categories)
        training = super()._train(engine, settings)
        self._student = distill(engine, training, own)
        return training

    def _keep(self, training: Training, settings: Settings) -> None:
        super()._keep(training, settings)
        self.teacher_ = self._checked_teacher()
        kept = ("agents_", "present_", "ledger_", "fit_report_", "n_features_in_", "feature_names_in_")
        for name in (*kept, "_owners_given", "_target_name", "_random_state", "_weight_unit", "_schema"):
            if hasattr(self, name):
                setattr(self.teacher_, name, getattr(self, name))
        self.teacher_._keep(training, settings)
        self.sums_ = None  # those of the teacher, which has them
        del self._student

    def _model(self, mixture: Mixture, training: Training, settings: Settings) -> Model:
        """The model of the student; every agent without a coordinator has the same."""
        taught = super()._model(mixture, training, settings)
        record = {name: value for name, value in taught.training.items() if name not in ("models", "cluster_scales")}
        words = words_of(self.edits, self._schema)
        student = {**self._student.record, "words": {str(feature): names for feature, names in words.items()}}
        return Model(
            self._student.mixture,
            taught.feature_names,
            taught.target_name,
            taught.settings,
            {**record, "student": student},
            taught.schema,
        )
