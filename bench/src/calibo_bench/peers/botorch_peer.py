"""BoTorch: SingleTaskGP and LogExpectedImprovement, plain or with input warping."""

import sys
import warnings
from typing import Any

import torch
from botorch.acquisition import LogExpectedImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.transforms import Standardize, Warp
from botorch.optim import optimize_acqf
from gpytorch.mlls import ExactMarginalLogLikelihood
from gpytorch.priors import LogNormalPrior
from protocol import position, serve, value_at


class BoTorch:
    """The loop of BoTorch's own first example."""

    def __init__(self, space: list[dict[str, Any]], seed: int) -> None:
        torch.manual_seed(seed)
        self.space = {entry["name"]: entry for entry in space}
        self.x: list[list[float]] = []
        self.y: list[float] = []

    def ask(self) -> dict[str, Any]:
        x = torch.tensor(self.x, dtype=torch.float64)
        y = -torch.tensor(self.y, dtype=torch.float64)[:, None]
        d = x.shape[1]
        transform = None
        if sys.argv[1] == "warp":
            prior = LogNormalPrior(0.0, 0.75**0.5)
            transform = Warp(d=d, indices=list(range(d)), concentration1_prior=prior, concentration0_prior=prior)
        model = SingleTaskGP(x, y, outcome_transform=Standardize(m=1), input_transform=transform)
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        bounds = torch.stack([torch.zeros(d, dtype=torch.float64), torch.ones(d, dtype=torch.float64)])
        found, _ = optimize_acqf(LogExpectedImprovement(model, y.max()), bounds, q=1, num_restarts=5, raw_samples=128)
        return {name: value_at(self.space[name], u) for name, u in zip(self.space, found[0].tolist(), strict=True)}

    def tell(self, params: dict[str, Any], value: float) -> None:
        self.x.append([position(entry, params[name]) for name, entry in self.space.items()])
        self.y.append(value)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    serve(BoTorch, ("botorch", "gpytorch", "torch"))
