"""What its field uses instead: eigenvectors of the symmetrised graph, or of the same operator."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, diags_array
from scipy.sparse.linalg import eigsh
from sklearn.cluster import SpectralClustering
from torch import Tensor

from .graphs import Digraph
from .operators import edges


def symmetrised_spectral(graph: Digraph, n_clusters: int, seed: int) -> NDArray[Any]:
    """scikit-learn's spectral clustering of ``(A + A^T) / 2``; labels of shape (n,)."""
    affinity = (graph.adjacency + graph.adjacency.T) / 2
    model = SpectralClustering(n_clusters, affinity="precomputed", random_state=seed)
    return np.asarray(model.fit(affinity).labels_)


def symmetric_form(operator: Tensor, stationary: Tensor) -> Any:
    """``D^1/2 P D^-1/2`` with ``D = diag(pi)``: symmetric, with the operator's spectrum, as scipy CSR."""
    rows, columns, weights = edges(operator)
    matrix = coo_array((weights.numpy(), (rows.numpy(), columns.numpy())), shape=tuple(operator.shape))
    root = np.sqrt(stationary.numpy())
    return (diags_array(root) @ matrix @ diags_array(1 / root)).tocsr()


def leading_eigenvectors(symmetric: Any, count: int) -> NDArray[np.float64]:
    """Eigenvectors of the largest eigenvalues by Lanczos iteration, shape (n, count)."""
    # ARPACK draws its own start if none is given, which would make the time a matter of luck.
    start = np.ones(symmetric.shape[0])
    return np.asarray(eigsh(symmetric, k=count, which="LA", v0=start)[1])
