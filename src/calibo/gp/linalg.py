"""Cholesky roots through LAPACK: K = U'U, U upper triangular, Fortran order.

A symmetric matrix travels "packed": its upper triangle column by column, n (n + 1) / 2 numbers, so
that kernels and their derivatives do no work twice.
"""

import warnings
from functools import lru_cache

import numpy as np
from scipy.linalg import blas, lapack

from calibo.arrays import Array, Indices, read_only
from calibo.errors import CaliboWarning, FitError

JITTERS = (1e-10, 1e-8, 1e-6, 1e-4)  # relative to the mean variance; one that helps at 1e-4 hides no signal of note


@lru_cache(maxsize=2)
def pairs(n: int) -> tuple[Indices, Indices, Indices]:
    """Rows and columns of the packed entries, and where among them the diagonal lies."""
    columns, rows = np.tril_indices(n)
    return read_only(rows), read_only(columns), read_only(np.cumsum(np.arange(1, n + 1)) - 1)


def unpack(packed: Array, n: int) -> Array:
    """The upper triangle (n, n) of a packed matrix."""
    return np.asarray(lapack.dtpttr(n, packed, uplo="U")[0])


def cholesky(packed: Array, variances: Array, unit: float | None = None) -> tuple[Array, float]:
    """Root of the packed matrix plus the diagonal ``variances`` (n,), and the jitter it took, a share of ``unit``."""
    n = len(variances)
    K = unpack(packed, n)
    diagonal = np.einsum("ii->i", K)
    diagonal += variances
    root, info = lapack.dpotrf(K, lower=0, clean=0)
    if info == 0 and np.isfinite(root[-1, -1]):  # LAPACK lets NaN pass; it reaches the last pivot
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
        "The covariance matrix must be positive definite, but it is not, not even with a jitter of 1e-4 of the "
        "variance. Give the observations noise, or merge points that lie on each other."
    )


def warn_of_jitter(jitter: float) -> None:
    """Says that the diagonal was raised: a fallback, never taken in silence."""
    warnings.warn(
        f"The covariance matrix was singular; a jitter of {jitter:.1e} was added to its diagonal. "
        "Points evaluated twice, or close together, without noise are the usual cause.",
        CaliboWarning,
        stacklevel=2,
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


def extended(root: Array, cross: Array, corner: Array) -> tuple[Array, float]:
    """Root of [[K, cross], [cross', corner]] in O(n^2 m), and the jitter its new block took."""
    n, m = cross.shape
    above = solve_root(root, cross)
    rest = corner - above.T @ above
    rows, columns, _ = pairs(m)
    # what is left of the variances may be rounding alone, even negative: the jitter is a share of what they were
    block, jitter = cholesky(rest[rows, columns], np.zeros(m), float(np.einsum("ii->i", corner).mean()))
    larger = np.zeros((n + m, n + m), order="F")
    larger[:n, :n], larger[:n, n:], larger[n:, n:] = root, above, np.triu(block)
    return larger, jitter
