"""Read a model.

Rules in words, the contributions to one prediction, and a simplified model with its loss of accuracy. The data are
scikit-learn's diabetes table: six measurements of 442 patients, and the progression of the disease after a year. Only
100 outcomes are known here.
"""

# %%
# Train on 100 labelled and 342 unlabelled rows.
import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes

from dsfr import SFRRegressor

table = load_diabetes(scaled=False, as_frame=True)
X, truth = table.data[["age", "bmi", "bp", "s1", "s3", "s5"]], table.target.rename("progression")
known = np.random.default_rng(0).permutation(len(X)) < 100
model = SFRRegressor(n_rules=3, tune="evidence", random_state=0).fit(X, truth.where(known)).model_

# %%
# The rules. *High* and *low* are quantiles among the given rows; conditions with little effect are omitted.
print(model.explain(X))

# %%
# The same as a data frame.
frame = model.explain(X).to_frame()
print(frame[["share", "mean_output", "bmi is", "bmi center", "bmi slope"]].round(3))

# %%
# One prediction: the mean output and the contributions of the rules that fired and of every feature add up to it.
patient = model.explain_prediction(X.iloc[16])
print(patient)
print("adds up:", np.isclose(patient.start + patient.firing + sum(patient.contributions.values()), patient.prediction))

# %%
# Contributions by rule and feature, in the target's units.
with pd.option_context("display.width", 160, "display.max_columns", 20):
    print(patient.to_frame().round(2))

# %%
# Similar sets are merged. The loss of accuracy is measured on the given rows, with outcomes that training did not use.
print(model.simplify(X, truth.mask(known), similarity=0.6))
