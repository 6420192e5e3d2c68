"""Read a model.

Rules in words, one prediction taken apart, and a simpler model with what it costs. The data are scikit-learn's diabetes
table: six measurements of 442 patients, and how far the disease went within a year. Only 100 outcomes are known here.
"""

# %%
# Train on 100 known outcomes and 342 rows without.
import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes

from dsfr import SFRRegressor

table = load_diabetes(scaled=False, as_frame=True)
X, truth = table.data[["age", "bmi", "bp", "s1", "s3", "s5"]], table.target.rename("progression")
known = np.random.default_rng(0).permutation(len(X)) < 100
model = SFRRegressor(n_rules=3, tune="evidence", random_state=0).fit(X, truth.where(known)).model_

# %%
# What the model says. *High* and *low* are places among the rows given; what hardly matters to a rule is left out.
print(model.explain(X))

# %%
# The same as a table, for whatever comes next.
frame = model.explain(X).to_frame()
print(frame[["share", "mean_output", "bmi is", "bmi center", "bmi slope"]].round(3))

# %%
# Why this prediction? Counted from the mean output, parts for the rules that fired and for every feature add up to it.
patient = model.explain_prediction(X.iloc[16].tolist())
print(patient)
print("adds up:", np.isclose(patient.start + patient.firing + sum(patient.contributions.values()), patient.prediction))

# %%
# By rule and feature, in the target's units.
with pd.option_context("display.width", 160, "display.max_columns", 20):
    print(patient.to_frame().round(2))

# %%
# Sets that are alike become one. The cost is measured on the rows given, with the outcomes the model never saw.
print(model.simplify(X, truth.mask(known), similarity=0.6))
