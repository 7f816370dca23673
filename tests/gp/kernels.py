"""The kernels a process is tried with."""

from calibo.gp.kernels import (
    RBF,
    Hamming,
    Linear,
    Matern32,
    Matern52,
    Periodic,
    ProductCovariance,
    ScaledCovariance,
    SumCovariance,
)

COLUMNS = (0, 1, 2)
KERNELS = [
    ScaledCovariance(RBF().on(COLUMNS)),
    ScaledCovariance(Matern32().on(COLUMNS)),
    ScaledCovariance(Matern52().on(COLUMNS)),
    SumCovariance(ScaledCovariance(Linear().on(COLUMNS)), ScaledCovariance(RBF().on((0,)))),
    ScaledCovariance(Periodic().on(COLUMNS)),
    ScaledCovariance(ProductCovariance(Matern52().on((0, 1)), Hamming().on((2,)))),
]
