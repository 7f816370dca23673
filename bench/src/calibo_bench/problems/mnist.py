"""Softmax regression on images of digits: WARP14 Sec. 4.2 and 4.4, with fewer images.

The images are not part of the package: see `calibo_bench.problems.data`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibo.space import Float, Int, Parameter, Space
from calibo_bench.problems.data import Contents, data_arrays
from calibo_bench.problems.source_tasks import source_task_of
from calibo_bench.problems.synthetic import Instance, Problem

__all__ = ["TRAINING", "Digits", "error_rate"]

CLASSES = 10
DIVERGED = 100.0 * (1.0 - 1.0 / CLASSES)  # error rate of random guessing

MNIST = Contents(
    "the MNIST page of Yann LeCun, or OpenML mnist_784: the training images, uint8 (60000, 28, 28), and labels, uint8",
    "edc0d1098aa497be14ace79ddd5171e5a3dcf9c4d196c015389203eb3ba1f59b",
)
USPS = Contents(
    "The Elements of Statistical Learning (zip.train, zip.test): images as grey values times 1,000, int16 (n, 16, 16), "
    "and labels, uint8",
    "a83ae3680b687e10a3b37c8549a4640a30252160fed8e8c85b73d3a8523398e7",
)

Images = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Digits:
    """Images (n, pixels) in [0, 1] and labels (n,), for training and held out."""

    x: Images
    y: NDArray[np.intp]
    held_out: Images
    truth: NDArray[np.intp]


@cache
def mnist() -> Digits:
    """The first 10,000 images for training; the next 10,000 are held out."""
    images, labels = (part[:20_000] for part in data_arrays("mnist/mnist.npz", MNIST, ("x_train", "y_train")))
    x = (images.reshape(len(images), -1) / 255.0).astype(np.float32)
    y = labels.astype(np.intp)
    return Digits(x[:10_000], y[:10_000], x[10_000:], y[10_000:])


@cache
def usps() -> Digits:
    """The first 6,000 training images; the other 1,291 and the test images are held out."""
    parts = data_arrays("usps/usps.npz", USPS, ("x_train", "y_train", "x_test", "y_test"))
    images, labels = np.concatenate([parts[0], parts[2]]), np.concatenate([parts[1], parts[3]])
    x = (images.reshape(len(images), -1) / 2000.0 + 0.5).astype(np.float32)
    y = labels.astype(np.intp)
    return Digits(x[:6_000], y[:6_000], x[6_000:], y[6_000:])


def error_rate(digits: Digits, rate: float, penalty: float, batch: int, epochs: int) -> float:
    """Error in per cent on the held-out images after stochastic gradient descent.

    The loss is cross-entropy with penalty / 2 times the squared weights. The order of the images is always the same.
    """
    rng = np.random.default_rng(0)
    n, pixels = digits.x.shape
    weights, bias = np.zeros((pixels, CLASSES), np.float32), np.zeros(CLASSES, np.float32)
    keep = np.float32(1.0 - rate * penalty)
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(epochs):
            order = rng.permutation(n)
            x, y = digits.x[order], digits.y[order]
            for first in range(0, n, batch):
                images, labels = x[first : first + batch], y[first : first + batch]
                logits = images @ weights + bias
                p = np.exp(logits - logits.max(axis=1, keepdims=True))
                p /= p.sum(axis=1, keepdims=True)
                p[np.arange(len(labels)), labels] -= 1.0
                p *= np.float32(rate / len(labels))
                weights *= keep
                weights -= images.T @ p
                bias -= p.sum(axis=0)
            if not np.isfinite(weights).all():
                return DIVERGED
        logits = digits.held_out @ weights + bias
    return float(100.0 * (logits.argmax(axis=1) != digits.truth).mean())


def _space(*, log: bool) -> Space:
    """With linear or log scales of rate, penalty and batch size."""
    parameters: dict[str, Parameter] = {
        "rate": Float(1e-4, 5.0, log=log),
        "penalty": Float(1e-6, 1.0, log=log),
        "batch": Int(20, 2000, log=log),
        "epochs": Int(1, 50),
    }
    return Space(parameters)


@cache
def _instance(data: Callable[[], Digits], *, log: bool) -> Instance:
    """One for all seeds, so that its range is estimated once."""
    digits = data()

    def value(params: Mapping[str, Any]) -> float:
        return error_rate(digits, params["rate"], params["penalty"], params["batch"], params["epochs"])

    return Instance(_space(log=log), value, None, samples=16)


def _after_usps(seed: int) -> Instance:
    source_tasks = cache(lambda: (source_task_of("usps", _instance(usps, log=False), seed),))
    return replace(_instance(mnist, log=False), source_tasks=source_tasks)


TRAINING = (
    Problem("softmax-mnist", lambda _: _instance(mnist, log=False)),
    Problem("softmax-mnist-log", lambda _: _instance(mnist, log=True)),
    Problem("softmax-mnist-after_usps", _after_usps),
)
"""On linear scales, on log scales, and with the smaller images of USPS as source task."""
