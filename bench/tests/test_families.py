import numpy as np
import pytest

from calibo_bench.problems.families import FAMILIES, drawn_from


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_draws_finite_functions_that_differ(family):
    found = []
    for seed in range(12):
        instance, spread = drawn_from(family, seed)
        again, _ = drawn_from(family, seed)
        x = np.random.default_rng(seed).random((40, len(instance.space)))
        values = [instance.value(dict(zip(instance.space, u, strict=True))) for u in x]
        assert np.all(np.isfinite(values))
        assert 0.01 < np.std(values) / spread < 100.0
        assert again.value(dict(zip(again.space, x[0], strict=True))) == values[0]
        found.append(round(values[0], 9))
    assert len(set(found)) == 12


def test_noise_is_of_every_kind():
    with_noise = 0
    for seed in range(30):
        instance, spread = drawn_from("bumps", seed)
        if instance.noise is not None:
            rng, params = np.random.default_rng(0), dict.fromkeys(instance.space, 0.5)
            with_noise += 1
            assert 0.01 < np.std([instance.noise(params, rng) for _ in range(200)]) / spread < 1.2
    assert 15 <= with_noise <= 29
