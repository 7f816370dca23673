"""The contracts of `calibo.testing`: our parts keep them, and broken parts do not."""

from dataclasses import dataclass

import numpy as np
import pytest

from calibo.calibration import NoScores, Prequential, ScoredOutcomes, ScoreSource
from calibo.gp.kernels import RBF, Hamming, Linear, Matern32, Matern52, Periodic, Scaled, Stationary
from calibo.models import GaussianProcess
from calibo.parts import register
from calibo.research import LearnedBoxCox, LearnedTanh, Logarithm, RefittedLeaveOneOut, RefittedTimeSeries
from calibo.testing import check_kernel, check_part, check_score_source, check_transform
from calibo.transforms import Asinh, LearnedAsinh, LearnedYeoJohnson, Untransformed

from .conftest import observations

KERNELS = [RBF(), Matern32(), Matern52(), Linear(), Periodic(), Hamming(), Scaled(RBF()), RBF() + Linear() * Periodic()]
TRANSFORMS = [Untransformed(), LearnedAsinh(), LearnedYeoJohnson(), LearnedBoxCox(), LearnedTanh(), Logarithm()]
SOURCES = [NoScores(), Prequential(), RefittedLeaveOneOut(), RefittedTimeSeries(2)]


@pytest.mark.parametrize("kernel", KERNELS)
def test_kernels(kernel):
    check_kernel(kernel)


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_transforms(transform):
    check_transform(transform)


@pytest.mark.parametrize("source", SOURCES)
def test_score_sources(source):
    check_score_source(source, GaussianProcess(), observations(9))


@register("wrong-derivative")
@dataclass(frozen=True)
class WrongDerivative(Stationary):
    def profile(self, r2):
        return np.exp(-0.5 * r2), -0.4 * np.exp(-0.5 * r2)


@register("indefinite")
@dataclass(frozen=True)
class Growing(Stationary):
    """1 + r2: symmetric, with the right derivatives, and no covariance."""

    def profile(self, r2):
        return 1.0 + r2, np.ones_like(r2)


@register("unsorted")
@dataclass(frozen=True)
class Decreasing(LearnedAsinh):
    def at(self, phi, y):
        T = super().at(phi, y)
        return Asinh(T.offset, -T.width)


@register("infinite-scores")
@dataclass(frozen=True)
class Infinite(ScoreSource):
    def scores(self, model):
        return ScoredOutcomes(np.full(len(model.observations), np.inf))


@pytest.mark.parametrize("kernel", [WrongDerivative(), Growing()])
def test_a_broken_kernel_is_found(kernel):
    with pytest.raises(AssertionError):
        check_kernel(kernel)


@pytest.mark.filterwarnings("ignore:invalid value")
def test_a_broken_transform_is_found():
    with pytest.raises(AssertionError, match="must increase"):
        check_transform(Decreasing())


def test_a_broken_score_source_is_found():
    with pytest.raises(AssertionError, match="finite"):
        check_score_source(Infinite(), GaussianProcess(), observations(6))


def test_a_part_comes_back_from_its_spec():
    check_part(RBF() + Linear())
