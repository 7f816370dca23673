"""Surrogate models: fitted to observations, they give a posterior."""

from calibo.models.base import FittedSurrogate, Surrogate
from calibo.models.choice import ModelChoice
from calibo.models.classifier import LabelClassifier
from calibo.models.gaussian_process import FittedGaussianProcess, GaussianProcess, forget_fits
from calibo.models.integrated import IntegratedProcess
from calibo.models.known_optimum import KnownOptimum
from calibo.models.transfer import SourceTask, Transfer

__all__ = [
    "FittedGaussianProcess",
    "FittedSurrogate",
    "GaussianProcess",
    "IntegratedProcess",
    "KnownOptimum",
    "LabelClassifier",
    "ModelChoice",
    "SourceTask",
    "Surrogate",
    "Transfer",
    "forget_fits",
]
