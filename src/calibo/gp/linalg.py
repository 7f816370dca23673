"""Cholesky factors through LAPACK: K = U'U, U upper triangular, Fortran order.

Symmetric matrices are passed in packed storage: the upper triangle column by column, n (n + 1) / 2 numbers.
So kernels and their derivatives evaluate each pair once.
"""

from functools import lru_cache

import numpy as np
from scipy.linalg import blas, lapack

from calibo.arrays import Array, Indices, read_only
from calibo.errors import FitError, warn

JITTERS = (1e-10, 1e-8, 1e-6, 1e-4)  # relative to the mean variance; 1e-4 still hides no relevant signal


@lru_cache(maxsize=2)
def pairs(n: int) -> tuple[Indices, Indices, Indices]:
    """Rows and columns of the packed entries, and the positions of the diagonal among them."""
    columns, rows = np.tril_indices(n)
    return read_only(rows), read_only(columns), read_only(np.cumsum(np.arange(1, n + 1)) - 1)


def unpack(packed: Array, n: int) -> Array:
    """The upper triangle (n, n) of a packed matrix."""
    return np.asarray(lapack.dtpttr(n, packed, uplo="U")[0])


def cholesky(packed: Array, variances: Array, unit: float | None = None) -> tuple[Array, float]:
    """Cholesky factor of the packed matrix plus diag(``variances`` (n,)), and the jitter added, scaled by ``unit``."""
    n = len(variances)
    K = unpack(packed, n)
    diagonal = np.einsum("ii->i", K)
    diagonal += variances
    root, info = lapack.dpotrf(K, lower=0, clean=0)
    if info == 0 and np.isfinite(root[-1, -1]):  # LAPACK does not detect NaN; it propagates to the last pivot
        return root, 0.0
    if not np.all(np.isfinite(packed)):
        raise FitError("The covariance matrix must be finite, but it is not. Check the inputs for extreme values.")
    size, added = float(diagonal.mean()) if unit is None else unit, 0.0
    for jitter in JITTERS:
        diagonal += jitter * size - added
        added = jitter * size
        root, info = lapack.dpotrf(K, lower=0, clean=0)
        if info == 0:
            return root, added
    raise FitError(
        "The covariance matrix must be positive definite, but it is not, even with a jitter of 1e-4 of the "
        "variance. Give the observations noise, or merge duplicate points."
    )


def warn_of_jitter(jitter: float) -> None:
    """Warn that jitter was added to the diagonal."""
    warn(
        f"The covariance matrix was singular; a jitter of {jitter:.1e} was added to its diagonal. "
        "Noise-free evaluations at the same or nearly the same point are the usual cause."
    )


def solve_root(root: Array, b: Array) -> Array:
    """U'^-1 b."""
    return np.asarray(lapack.dtrtrs(root, b, trans=1)[0])


def solve(root: Array, b: Array) -> Array:
    """K^-1 b."""
    return np.asarray(lapack.dpotrs(root, b, lower=0)[0])


def back_solve(root: Array, b: Array) -> Array:
    """U^-1 b."""
    return np.asarray(lapack.dtrtrs(root, b)[0])


def inverse(root: Array) -> Array:
    """The upper triangle of K^-1."""
    return np.asarray(lapack.dpotri(root, lower=0)[0])


def log_determinant(root: Array) -> float:
    """log det K."""
    return 2.0 * float(np.log(np.einsum("ii->i", root)).sum())


def pack_difference(upper: Array, alpha: Array) -> Array:
    """alpha alpha' - K^-1 packed, from the upper triangle of K^-1, which is overwritten."""
    difference = blas.dsyr(-1.0, alpha, a=upper, lower=0, overwrite_a=1)
    return np.asarray(-lapack.dtrttp(difference, uplo="U")[0])


def extend_cholesky(root: Array, cross: Array, corner: Array) -> tuple[Array, float]:
    """Cholesky factor of [[K, cross], [cross', corner]] in O(n^2 m), and the jitter added to the new block."""
    n, m = cross.shape
    above = solve_root(root, cross)
    rest = corner - above.T @ above
    rows, columns, _ = pairs(m)
    # the Schur complement may be pure rounding error, even negative: jitter is relative to the prior variances
    block, jitter = cholesky(rest[rows, columns], np.zeros(m), float(np.einsum("ii->i", corner).mean()))
    larger = np.zeros((n + m, n + m), order="F")
    larger[:n, :n], larger[:n, n:], larger[n:, n:] = root, above, np.triu(block)
    return larger, jitter
