"""Make a report.

One HTML page about a model that works offline, on a phone and in print: rules, sets, sliders with the live prediction,
training. On the command line: `dsfr report model.dsfr data.csv -o report.html`.
"""

# %%
# A model of the diabetes table over three owners, and its page.
import numpy as np
from sklearn.datasets import load_diabetes

from dsfr import SFRRegressor
from dsfr.report import write_report

table = load_diabetes(scaled=False, as_frame=True)
X, truth = table.data, table.target.rename("progression")
rng = np.random.default_rng(0)
owners = rng.choice(["north", "east", "south"], len(X))
few = truth.where(rng.permutation(len(X)) < 120)
model = SFRRegressor(n_rules=4, ridge=1.0, random_state=0).fit(X, few, agents=owners).model_
print(write_report(model, "diabetes.html", X, truth))
