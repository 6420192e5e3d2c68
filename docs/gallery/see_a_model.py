"""See a model.

Plots of a model's rules and predictions, with `dsfr.plot`. Every function takes `ax` and returns the axes, so that
figures can be combined and changed as usual.
"""

# %%
# A model of the diabetes table, from 150 known outcomes.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

from dsfr import SFRRegressor, plot

table = load_diabetes(scaled=False, as_frame=True)
X, truth = table.data[["age", "bmi", "bp", "s5"]], table.target.rename("progression")
known = np.random.default_rng(0).permutation(len(X)) < 150
model = SFRRegressor(n_rules=4, tune="evidence", random_state=0).fit(X, truth.where(known)).model_

# %%
# The sets of one feature in all rules, over the histogram of the rows.
plot.memberships(model, "s5", X)

# %%
# Centers of the rules: in two features, and in the plane of the first two principal components.
_, (left, right) = plt.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
plot.rule_map(model, X, ("bmi", "s5"), ax=left)
plot.rule_map(model, X, ax=right)

# %%
# Predicted against true outcomes of patients whose outcome was not used in training.
plot.predictions(model, X[~known], truth[~known])

# %%
# The prediction along one feature: mean over the rows, and bands with 50 % and 90 % of the curves of single rows.
_, pair = plt.subplots(1, 2, figsize=(11, 4), layout="constrained", sharey=True)
for ax, feature in zip(pair, ("bmi", "s5"), strict=True):
    plot.response(model, feature, X, ax=ax)
