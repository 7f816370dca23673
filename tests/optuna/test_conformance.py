"""The suites that Optuna ships for samplers."""

import pytest
from optuna.testing.pytest_samplers import BasicSamplerTestCase, RelativeSamplerTestCase, SingleOnlySamplerTestCase

from calibo.optuna.sampler import CalibratedSampler


@pytest.mark.filterwarnings("ignore:No configuration was found")  # ten trials of three choices
class TestCalibratedSampler(BasicSamplerTestCase, RelativeSamplerTestCase, SingleOnlySamplerTestCase):
    @pytest.fixture
    def sampler(self):
        return lambda: CalibratedSampler(seed=0)


@pytest.mark.filterwarnings("ignore:No configuration was found")
class TestCalibratedSamplerWithoutDesign(BasicSamplerTestCase, RelativeSamplerTestCase, SingleOnlySamplerTestCase):
    @pytest.fixture
    def sampler(self):
        return lambda: CalibratedSampler(n_startup_trials=0)
