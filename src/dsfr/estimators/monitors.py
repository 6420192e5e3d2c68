"""Callbacks for ``on_round`` that write every round where people look at trainings: TensorBoard, MLflow."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from typing import Any, Self

from dsfr.core.consensus.admm import RoundInfo

_NUMBERS = ("objective", "primal_residual", "dual_residual", "error_bound")


def metrics_of(info: RoundInfo) -> dict[str, float]:
    """The known numbers of a round, by names such as ``weights/error_bound``.

    >>> metrics_of(RoundInfo("weights", 3, float("nan"), 0.1, 0.2, float("inf")))
    {'weights/primal_residual': 0.1, 'weights/dual_residual': 0.2}
    """
    numbers = {f"{info.stage}/{name}": float(getattr(info, name)) for name in _NUMBERS}
    return {name: value for name, value in numbers.items() if math.isfinite(value)}


def together(*callbacks: Callable[[RoundInfo], None]) -> Callable[[RoundInfo], None]:
    """One callback that calls several, in order."""

    def on_round(info: RoundInfo) -> None:
        for callback in callbacks:
            callback(info)

    return on_round


class _Shared:
    """A callback that copies of an estimator share: a search clones estimators, and a log must not be cloned."""

    def __deepcopy__(self, memo: Mapping[int, Any]) -> Self:
        return self


class TensorBoard(_Shared):
    """Write rounds as scalars into a folder for ``tensorboard --logdir``.

    ``with TensorBoard("runs/first") as on_round: SFRRegressor(on_round=on_round).fit(X, y)``

    Raises
    ------
    ImportError
        Saying how to get tensorboardX, if neither it nor PyTorch's writer is there.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._writer = _summary_writer()(os.fspath(folder))

    def __call__(self, info: RoundInfo) -> None:
        """Write one round."""
        for name, value in metrics_of(info).items():
            self._writer.add_scalar(name, value, info.round)

    def close(self) -> None:
        """Write what is still waiting."""
        self._writer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class MLflow(_Shared):
    """Log rounds as metrics of the active MLflow run (or one that MLflow starts).

    Raises
    ------
    ImportError
        Saying how to get mlflow, if it is not there.
    """

    def __init__(self) -> None:
        try:
            import mlflow
        except ImportError as error:
            raise ImportError("logging to MLflow needs the mlflow package: pip install mlflow") from error
        self._log_metrics = mlflow.log_metrics

    def __call__(self, info: RoundInfo) -> None:
        """Log one round."""
        self._log_metrics(metrics_of(info), step=info.round)


def _summary_writer() -> Any:
    try:
        from tensorboardX import SummaryWriter
    except ImportError:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise ImportError("logging to TensorBoard needs a writer: pip install 'dsfr[tensorboard]'") from error
    return SummaryWriter
