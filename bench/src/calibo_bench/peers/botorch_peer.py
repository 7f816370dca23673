"""BoTorch: SingleTaskGP and log expected improvement; with input warping, or with a sparse prior (MAP-SAAS)."""

import sys
import warnings
from typing import Any

import torch
from botorch.acquisition import LogExpectedImprovement
from botorch.acquisition.logei import qLogNoisyExpectedImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.models import MixedSingleTaskGP, SingleTaskGP
from botorch.models.map_saas import AdditiveMapSaasSingleTaskGP
from botorch.models.transforms import Standardize, Warp
from botorch.optim import optimize_acqf
from botorch.optim.optimize_mixed import optimize_acqf_mixed_alternating
from gpytorch.mlls import ExactMarginalLogLikelihood
from gpytorch.priors import LogNormalPrior
from protocol import Task, position, serve, value_at

EXACT = 1e-6  # noise variance, relative to that of the values, where they are free of noise
LISTED = 100  # integers with more values are rounded


class BoTorch:
    """The loop of BoTorch's own first example; told of exact values, of categories and of integers."""

    def __init__(self, task: Task) -> None:
        torch.manual_seed(task.seed)
        self.space, self.exact = task.space, task.exact
        self.params: list[dict[str, Any]] = []
        self.y: list[float] = []
        self.model: Any = None
        kinds = [entry["kind"] for entry in self.space.values()]
        self.categories = {j: len(e["choices"]) for j, e in enumerate(self.space.values()) if kinds[j] == "categorical"}
        self.integers = {j: _positions(e) for j, e in enumerate(self.space.values()) if kinds[j] == "int"}
        self.integers = {j: values for j, values in self.integers.items() if len(values) <= LISTED}

    def ask(self) -> dict[str, Any]:
        x, y = self._data()
        model = self._fitted()
        acquisition = (
            LogExpectedImprovement(model, y.max())
            if self.exact
            else qLogNoisyExpectedImprovement(model, X_baseline=x, prune_baseline=True)
        )
        top = [float(self.categories.get(j, 2) - 1) for j in range(x.shape[1])]
        bounds = torch.tensor([[0.0] * x.shape[1], top], dtype=torch.float64)
        if self.categories or self.integers:
            found, _ = optimize_acqf_mixed_alternating(
                acquisition,
                bounds,
                discrete_dims=self.integers,
                cat_dims={j: [float(k) for k in range(n)] for j, n in self.categories.items()},
                q=1,
                num_restarts=5,
                raw_samples=128,
            )
        else:
            found, _ = optimize_acqf(acquisition, bounds, q=1, num_restarts=5, raw_samples=128)
        return {
            name: entry["choices"][round(u)] if entry["kind"] == "categorical" else value_at(entry, u)
            for (name, entry), u in zip(self.space.items(), found[0].tolist(), strict=True)
        }

    def tell(self, params: dict[str, Any], value: float) -> None:
        self.params.append(params)
        self.y.append(value)
        self.model = None

    def recommend(self) -> dict[str, Any]:
        """The evaluated point with the best posterior mean."""
        (x, _), model = self._data(), self._fitted()
        with torch.no_grad():
            mean = model.posterior(x).mean.reshape(-1, len(x)).mean(dim=0)
        return self.params[int(mean.argmax())]

    def forecast(self, params: dict[str, Any]) -> tuple[float, float, float]:
        """The mean of the posterior, and the standard deviations of an observation and of the function."""
        x, model = self._points([params]), self._fitted()
        with torch.no_grad():
            function, observed = model.posterior(x), model.posterior(x, observation_noise=not self.exact)
        return -float(function.mean), float(observed.variance) ** 0.5, float(function.variance) ** 0.5

    def _points(self, points: list[dict[str, Any]]) -> Any:
        x = [
            [
                float(e["choices"].index(params[name])) if e["kind"] == "categorical" else position(e, params[name])
                for name, e in self.space.items()
            ]
            for params in points
        ]
        return torch.tensor(x, dtype=torch.float64)

    def _data(self) -> tuple[Any, Any]:
        return self._points(self.params), -torch.tensor(self.y, dtype=torch.float64)[:, None]

    def _fitted(self) -> Any:
        if self.model is not None:
            return self.model
        x, y = self._data()
        d = x.shape[1]
        options: dict[str, Any] = {"outcome_transform": Standardize(m=1)}
        if self.exact:
            options["train_Yvar"] = torch.full_like(y, EXACT * max(float(y.var()), 1e-12))
        if self.categories and sys.argv[1] != "plain":
            raise ValueError(f"{sys.argv[1]} is for numbers only")
        if self.categories:
            model = MixedSingleTaskGP(x, y, cat_dims=list(self.categories), **options)
        elif sys.argv[1] == "saas":
            model = AdditiveMapSaasSingleTaskGP(x, y, **options)
        else:
            if sys.argv[1] == "warp":
                prior = LogNormalPrior(0.0, 0.75**0.5)
                options["input_transform"] = Warp(
                    d=d, indices=list(range(d)), concentration1_prior=prior, concentration0_prior=prior
                )
            model = SingleTaskGP(x, y, **options)
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        self.model = model
        return model


def _positions(entry: dict[str, Any]) -> list[float]:
    """The position of every integer."""
    return [position(entry, value) for value in range(entry["low"], entry["high"] + 1)]


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    serve(BoTorch, ("botorch", "gpytorch", "torch"))
