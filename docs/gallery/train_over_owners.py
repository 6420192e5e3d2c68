"""Train over owners.

Five owners hold a part of the table each and train one model: convergence of the rounds, and communication.
"""

# %%
# Every owner has patients of similar age, so the distributions differ. Ten outcomes are known at each.
import numpy as np
from sklearn.datasets import load_diabetes

from dsfr import InProcess, SFRRegressor, nrmse, plot
from dsfr.paper.datasets import hide_labels_by_agent, split_by_column

table = load_diabetes(scaled=False, as_frame=True)
X, truth = table.data, table.target.to_numpy()
owners = split_by_column(X["age"].to_numpy(), 5)
few = hide_labels_by_agent(truth, owners, 50, np.random.default_rng(0))
estimator = SFRRegressor(ridge=1.0, random_state=0).fit(X, few, agents=owners)
hidden = np.isnan(few)
print(f"{estimator.n_rounds_} rounds, {estimator.ledger_.bytes / 1e3:.0f} kB, {estimator.termination_}")
print(f"NRMSE on the {hidden.sum()} hidden outcomes: {nrmse(truth[hidden], estimator.predict(X[hidden])):.3f}")

# %%
# Conjugate residuals on the weights, until they are provably within the tolerance of the pooled solution.
plot.convergence(estimator.history_, "weights")

# %%
# Communication by task.
plot.communication(estimator.ledger_)

# %%
# On a ring only neighbors exchange messages, and sums pass along a tree: the agent at the root has the most traffic.
ring = SFRRegressor(ridge=1.0, engine=InProcess(topology="ring"), random_state=0).fit(X, few, agents=owners)
print("largest difference of predictions:", f"{np.abs(ring.predict(X) - estimator.predict(X)).max():.1e}")
plot.communication(ring.ledger_, "agent")
