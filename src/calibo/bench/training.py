"""Softmax regression on images of digits, trained for real: WARP14 Sec. 4.2 and 4.4, with fewer images.

The images are not part of the package: see `calibo.bench.data`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibo.bench.data import data_file
from calibo.bench.earlier import learned
from calibo.bench.problems import Instance, Problem
from calibo.space import Float, Int, Parameter, Space

__all__ = ["TRAINING", "Digits", "error_rate"]

EVALUATIONS = 30  # of the run on the smaller data that comes before
CLASSES = 10
DIVERGED = 100.0 * (1.0 - 1.0 / CLASSES)  # error rate of whoever has learned nothing

Images = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Digits:
    """Images (n, pixels) in [0, 1] and what they show (n,): to train on, and to be judged by."""

    x: Images
    y: NDArray[np.intp]
    held_out: Images
    truth: NDArray[np.intp]


@cache
def mnist() -> Digits:
    """The first 10,000 images for training; the next 10,000 are held out."""
    source = "the MNIST page of Yann LeCun, or OpenML mnist_784, as arrays x_train and y_train"
    digest = "06af5dfe73b70e3bc1c36439982b18a8d76803db9b544f6fdf838a37fbb01b64"
    with np.load(data_file("mnist/mnist.npz", digest, source)) as arrays:
        images, labels = arrays["x_train"][:20_000], arrays["y_train"][:20_000].astype(np.intp)
    x = (images.reshape(len(images), -1) / 255.0).astype(np.float32)
    return Digits(x[:10_000], labels[:10_000], x[10_000:], labels[10_000:])


@cache
def usps() -> Digits:
    """The first 6,000 training images; the other 1,291 and the test images are held out."""
    source = "the page of The Elements of Statistical Learning (zip.train, zip.test), grey values times 1,000"
    digest = "cacab83962eeeffa0a35d888c14098592cd3501b387ec70f384975fd3d75cb4c"
    with np.load(data_file("usps/usps.npz", digest, source)) as arrays:
        images = np.concatenate([arrays["x_train"], arrays["x_test"]])
        labels = np.concatenate([arrays["y_train"], arrays["y_test"]]).astype(np.intp)
    x = (images.reshape(len(images), -1) / 2000.0 + 0.5).astype(np.float32)
    return Digits(x[:6_000], labels[:6_000], x[6_000:], labels[6_000:])


def error_rate(digits: Digits, rate: float, penalty: float, batch: int, epochs: int) -> float:
    """Per cent of the held-out images that are taken for another digit, after stochastic gradient descent.

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
    """With the scales of rate, penalty and batch size as asked for."""
    parameters: dict[str, Parameter] = {
        "rate": Float(1e-4, 5.0, log=log),
        "penalty": Float(1e-6, 1.0, log=log),
        "batch": Int(20, 2000, log=log),
        "epochs": Int(1, 50),
    }
    return Space(parameters)


LINEAR, LOGARITHMIC = _space(log=False), _space(log=True)


def _instance(digits: Digits, space: Space) -> Instance:
    def value(params: Mapping[str, Any]) -> float:
        return error_rate(digits, params["rate"], params["penalty"], params["batch"], params["epochs"])

    return Instance(space, value, None, samples=16)


def _after_usps(seed: int) -> Instance:
    earlier = cache(lambda: (learned("usps", _instance(usps(), LINEAR), seed, EVALUATIONS),))
    return replace(_instance(mnist(), LINEAR), earlier=earlier)


TRAINING = (
    Problem("softmax-mnist", lambda _: _instance(mnist(), LINEAR)),
    Problem("softmax-mnist-log", lambda _: _instance(mnist(), LOGARITHMIC)),
    Problem("softmax-mnist-after_usps", _after_usps),
)
"""On linear scales, on logarithmic ones, and after a run on the smaller images of USPS."""
