import warnings

import numpy as np
import pytest

from calibo.errors import CaliboWarning, FitError
from calibo.gp import linalg
from calibo.gp.kernels import RBF
from calibo.gp.process import Process


def matrix(n: int) -> np.ndarray:
    a = np.random.default_rng(n).normal(size=(n, n))
    return a @ a.T + np.eye(n)


def pack(K: np.ndarray) -> np.ndarray:
    rows, columns, _ = linalg.pairs(len(K))
    return K[rows, columns]


@pytest.mark.parametrize("n", [1, 2, 7])
def test_packed_entries_are_the_upper_triangle(n):
    K = matrix(n)
    np.testing.assert_array_equal(np.triu(linalg.unpack(pack(K), n)), np.triu(K))
    np.testing.assert_array_equal(pack(K)[linalg.pairs(n)[2]], np.diag(K))


@pytest.mark.parametrize("n", [1, 2, 7])
def test_solves_match_the_dense_inverse(n):
    K, b = matrix(n), np.arange(1.0, n + 1)
    root, jitter = linalg.cholesky(pack(K - np.eye(n)), np.ones(n))
    assert jitter == 0.0
    np.testing.assert_allclose(linalg.solve(root, b), np.linalg.inv(K) @ b, rtol=1e-9)
    np.testing.assert_allclose(np.triu(linalg.inverse(root)), np.triu(np.linalg.inv(K)), rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(linalg.log_determinant(root), np.linalg.slogdet(K)[1], rtol=1e-10)
    outer = np.outer(b, b) - np.linalg.inv(K)
    np.testing.assert_allclose(linalg.pack_difference(linalg.inverse(root), b), pack(outer), rtol=1e-8, atol=1e-9)


def test_an_extended_root_is_the_root_of_the_larger_matrix():
    K = matrix(8)
    root, _ = linalg.cholesky(pack(K[:5, :5]), np.zeros(5))
    larger, jitter = linalg.extend_cholesky(root, K[:5, 5:], K[5:, 5:])
    assert jitter == 0.0
    np.testing.assert_allclose(np.triu(larger).T @ np.triu(larger), K, rtol=1e-10)


def test_a_singular_matrix_takes_a_jitter():
    root, jitter = linalg.cholesky(np.ones(6), np.zeros(3))
    assert 0.0 < jitter <= 1e-4
    assert np.all(np.isfinite(np.triu(root)))


def test_an_indefinite_matrix_is_an_error_that_says_what_to_do():
    with pytest.raises(FitError, match="Give the observations noise"):
        linalg.cholesky(np.array([1.0, 5.0, 1.0]), np.zeros(2))
    with pytest.raises(FitError, match="finite"):
        linalg.cholesky(np.array([1.0, np.nan, 1.0]), np.zeros(2))


def test_duplicated_points_without_noise_warn():
    x, theta = np.zeros((3, 1)), np.array([0.0, np.log(1e-4), 0.0])
    with pytest.warns(CaliboWarning, match="jitter"):
        process = Process.from_data(RBF().on((0,)), theta, x, np.zeros(3), np.zeros(3))
    mean, variance = process.posterior(np.array([[0.0], [1.0]]))
    assert np.all(np.isfinite([mean, variance]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Process.from_data(RBF().on((0,)), theta, x, np.zeros(3), np.full(3, np.nan))
