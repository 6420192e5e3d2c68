"""The paper's method in plain numpy, written from its equations; it imports nothing of the package.

Two misprints are corrected as the paper's own derivation has it: eq. (5) gives memberships (and not their powers), and
Q of eq. (37) has rho_p (and not mu). A width of 0 would divide by 0, so widths have a floor.
"""

import numpy as np

FLOOR = 0.01


def scaled(tables):
    """Features of all agents between -1 and 1, and the function that does the same to other rows."""
    low, high = (f([f(X, axis=0) for X in tables], axis=0) for f in (np.min, np.max))

    def scale(X):
        return 2 * (X - low) / (high - low) - 1

    return [scale(X) for X in tables], scale


def weights_of_rows(X, centers, alpha):
    """Powers of the memberships (5), and 0 for rows that are not in the cluster: sums are over C_k."""
    distances = np.array([((X - m) ** 2).sum(axis=1) for m in centers]).T
    u = np.empty_like(distances)
    for k in range(len(centers)):
        u[:, k] = 1 / ((distances[:, [k]] / distances) ** (1 / (alpha - 1))).sum(axis=1)
    own = distances.argmin(axis=1)
    return np.array([[u[i, k] ** alpha if own[i] == k else 0.0 for k in range(len(centers))] for i in range(len(X))])


def variances(X, centers, alpha):
    """(19), squared; NaN for a cluster without rows."""
    w = weights_of_rows(X, centers, alpha)
    with np.errstate(invalid="ignore"):
        return np.array([(w[:, k, None] * (X - m) ** 2).sum(axis=0) / w[:, k].sum() for k, m in enumerate(centers)])


def fcm(X, start, alpha, tol):
    """Centralised clustering: the objective (4) over C_k, until centers stay unchanged."""
    m = start
    for _ in range(10_000):
        w = weights_of_rows(X, m, alpha)
        mass = w.sum(axis=0)
        moved = np.where(mass[:, None] > 0, (w.T @ X) / np.where(mass > 0, mass, 1)[:, None], m)
        if np.abs(moved - m).max() <= tol:
            return moved
        m = moved
    raise AssertionError("fuzzy c-means did not end")


def dfcm(tables, start, alpha, rho, tol, max_rounds):
    """Algorithm 1 with the tests (30) and (31): global centers, local centers, rounds, whether both were passed."""
    L, K = len(tables), len(start)
    r, m, dual = start, [start] * L, [np.zeros_like(start)] * L
    for t in range(1, max_rounds + 1):
        w = [weights_of_rows(X, centers, alpha) for X, centers in zip(tables, m, strict=True)]
        m = [(w[a].T @ tables[a] - dual[a] + rho * r) / (w[a].sum(axis=0) + rho)[:, None] for a in range(L)]  # (26)
        r = sum(dual) / L / rho + sum(m) / L  # (27)
        new = [dual[a] + rho * (m[a] - r) for a in range(L)]  # (25)
        apart = max(((m[a][k] - m[b][k]) ** 2).sum() for a in range(L) for b in range(L) for k in range(K))
        change = max(((new[a][k] - dual[a][k]) ** 2).sum() for a in range(L) for k in range(K))
        dual = new
        if apart <= tol and change <= tol:
            return r, m, t, True
    return r, m, max_rounds, False


def average_widths(tables, local_centers, alpha):
    """(18): local variances weighted by the rows of the agents; those without rows of a cluster do not count."""
    local = np.array([variances(X, m, alpha) for X, m in zip(tables, local_centers, strict=True)])
    sizes = np.array([len(X) for X in tables])[:, None, None] * ~np.isnan(local)
    pooled = (sizes * np.nan_to_num(local)).sum(axis=0) / np.maximum(sizes.sum(axis=0), 1)
    return np.maximum(np.sqrt(pooled), FLOOR)


def hidden(X, centers, widths):
    """H(X), eq. (8), from the normalised firing strengths (1) and (2)."""
    phi = np.exp(-np.array([(((X - m) / s) ** 2).sum(axis=1) for m, s in zip(centers, widths, strict=True)]).T)
    phi = phi / phi.sum(axis=1, keepdims=True)
    return np.hstack([np.hstack([phi[:, [k]], phi[:, [k]] * X]) for k in range(len(centers))])


def wavelets(X, a, b):
    """Hidden nodes of LapWNN."""
    t = (X[:, None, :] - b) / a
    return np.prod(-t * np.exp(-(t**2) / 2) / np.sqrt(a), axis=2)


def icr(features, U, first, second, mix):
    """B'B with B of eq. (15)."""
    mix = mix[:, None]
    B = features(mix * U[first] + (1 - mix) * U[second]) - mix * features(U[first]) - (1 - mix) * features(U[second])
    return B.T @ B


def laplacian(features, X):
    """H'LH with the Laplacian of the full kernel graph."""
    kernel = np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / 2)
    H = features(X)
    return H.T @ (np.diag(kernel.sum(axis=1)) - kernel) @ H


def closed_form(H, y, penalty, gamma, mu):
    """(16)."""
    return np.linalg.solve(H.T @ H + gamma * penalty + mu * np.eye(H.shape[1]), H.T @ y)


def dicr(labeled, penalty_of, gamma, mu, rho, tol, max_rounds):
    """Algorithm 2: global weights, rounds, whether the tests were passed; ``penalty_of(agent, round)`` gives B'B."""
    L, p = len(labeled), labeled[0][0].shape[1]
    z, beta = np.zeros(p), [np.zeros(p)] * L
    for t in range(1, max_rounds + 1):
        w = []
        for a, (H, y) in enumerate(labeled):
            Q = H.T @ H + gamma * penalty_of(a, t) + rho * np.eye(p)
            w.append(np.linalg.solve(Q, H.T @ y + rho * z - beta[a]))  # (36)
        z = sum(beta[a] + rho * w[a] for a in range(L)) / (mu + rho * L)  # (38)
        new = [beta[a] + rho * (w[a] - z) for a in range(L)]  # (35)
        apart = max(((w[a] - w[b]) ** 2).sum() for a in range(L) for b in range(L))
        change = max(((new[a] - beta[a]) ** 2).sum() for a in range(L))
        beta = new
        if apart <= tol and change <= tol:
            return z, t, True
    return z, max_rounds, False
