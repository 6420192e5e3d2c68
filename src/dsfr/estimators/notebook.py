"""What notebooks show of an estimator."""

from __future__ import annotations

from html import escape
from typing import Any

from sklearn.utils import estimator_html_repr

from dsfr.model.model import Model


class NotebookMixin:
    """Parameters and, of a fitted estimator, its rules as a small table."""

    model_: Model

    def _repr_html_(self) -> str:
        if not hasattr(self, "model_"):
            return str(estimator_html_repr(self))
        return f"<p><code>{escape(repr(self))}</code></p>{self.model_._repr_html_()}"

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}
