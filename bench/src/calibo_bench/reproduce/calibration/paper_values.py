"""Values printed in CAL24, from five runs each."""

from collections.abc import Mapping

__all__ = ["TABLE2", "TABLE3", "TABLE4"]

# CAL24 Tables 1 and 3: m and its error, f, a
TABLE3: Mapping[str, Mapping[str, tuple[float, float, float, float]]] = {
    "forrester": {
        "uncalibrated": (-0.986, 0.001, 0.8, 0.9866),
        "input warping": (-0.889, 0.000, 1.0, 1.0000),
        "output warping (tanh)": (-6.021, 0.000, 0.0, 0.2409),
        "Box-Cox": (-4.806, 0.780, 0.4, 0.4911),
        "log": (-0.986, 0.000, 1.0, 0.9865),
        "bagged ensemble of 5": (-3.891, 1.098, 0.8, 0.8382),
        "calibrated": (-4.983, 0.894, 1.0, 0.8187),
    },
    "ackley2": {
        "uncalibrated": (12.359, 2.439, 0.8, 0.7815),
        "input warping": (14.061, 1.312, 0.8, 0.8125),
        "output warping (tanh)": (10.459, 3.365, 0.6, 0.7257),
        "Box-Cox": (14.421, 1.423, 0.8, 0.9015),
        "log": (8.330, 0.849, 0.8, 0.6524),
        "bagged ensemble of 5": (6.011, 2.544, 0.6, 0.6013),
        "calibrated": (5.998, 2.314, 1.0, 0.5516),
    },
    "cosines": {
        "uncalibrated": (-1.5974, 0.00102, 0.8, 0.3441),
        "input warping": (-1.3054, 0.0347, 1.0, 0.9534),
        "output warping (tanh)": (-1.5994, 0.0001, 0.8, 0.4730),
        "Box-Cox": (-1.5306, 0.0590, 0.8, 0.5969),
        "log": (-1.5992, 0.0003, 0.8, 0.3642),
        "bagged ensemble of 5": (-1.5989, 0.0003, 0.4, 0.3179),
        "calibrated": (-1.5983, 0.0006, 1.0, 0.2969),
    },
    "alpine10": {
        "uncalibrated": (15.506, 1.275, 0.6, 0.6527),
        "input warping": (15.697, 1.740, 0.8, 0.6492),
        "output warping (tanh)": (13.531, 2.127, 0.6, 0.5857),
        "Box-Cox": (15.715, 0.603, 0.8, 0.6253),
        "log": (20.996, 1.661, 0.8, 0.7931),
        "bagged ensemble of 5": (16.677, 1.699, 0.8, 0.7334),
        "calibrated": (12.537, 0.909, 1.0, 0.6423),
    },
}

# share of runs where calibrated is best, area calibrated, area uncalibrated
TABLE2 = {
    "cosines": (0.8, 0.2973, 0.3395),
    "beale": (0.6, 0.0929, 0.0930),
    "mccormick": (0.8, 0.1335, 0.1297),
    "different_powers2": (0.8, 0.2083, 0.2325),
    "cross_in_tray": (0.2, 0.2494, 0.2217),
    "ackley2": (0.8, 0.3617, 0.4314),
    "drop_wave": (0.6, 0.0455, 0.0452),
}

# Table 4: the kernel, the calibration, the acquisition, the start; f, a of the calibrated and of the uncalibrated
TABLE4: Mapping[str, Mapping[str, tuple[str, str, str, str, tuple[float, float, float]]]] = {
    "kernel": {
        "Matern": ("+matern", "+splits1", "", "random3", (0.8, 0.2811, 0.3454)),
        "linear": ("+linear", "+splits1", "", "random3", (1.0, 0.5221, 1.0)),
        "RBF": ("+rbf", "+splits1", "", "random3", (0.4, 0.2366, 0.2922)),
        "periodic": ("+periodic", "+splits1", "", "random3", (0.6, 0.2586, 0.3305)),
    },
    "time-series splits": {
        "N-1": ("+matern", "+splits1", "", "random3", (0.8, 0.2811, 0.3454)),
        "N-2": ("+matern", "+splits2", "", "random3", (0.8, 0.2768, 0.3454)),
        "N-3": ("+matern", "+splits3", "", "random3", (0.8, 0.2653, 0.3454)),
        "N-4": ("+matern", "+splits4", "", "random3", (0.6, 0.2643, 0.3454)),
    },
    "recalibrator": {
        "GP": ("+matern", "+splits1", "", "random3", (0.8, 0.2810, 0.3454)),
        "MLP": ("+matern", "+splits1-mlp", "", "random3", (0.8, 0.2785, 0.3454)),
    },
    "initial points": {
        "3": ("+matern", "+splits1", "", "random3", (0.8, 0.2810, 0.3454)),
        "4": ("+matern", "+splits1", "", "random4", (0.8, 0.0557, 0.0614)),
        "7": ("+matern", "+splits1", "", "random7", (0.4, 0.0719, 0.0736)),
        "10": ("+matern", "+splits1", "", "random10", (0.4, 0.0825, 0.0817)),
    },
    "design of four": {
        "random": ("+matern", "+splits1", "", "random4", (0.8, 0.0557, 0.0614)),
        "Sobol": ("+matern", "+splits1", "", "sobol4", (0.6, 0.0415, 0.0414)),
        "Latin": ("+matern", "+splits1", "", "latin4", (0.2, 0.2358, 0.2181)),
    },
    "acquisition, linear kernel": {
        "LCB": ("+linear", "+splits1", "+lcb2", "random3", (1.0, 1.0, 1.0)),
        "EI": ("+linear", "+splits1", "", "random3", (1.0, 0.5221, 1.0)),
        "PI": ("+linear", "+splits1", "+pi", "random3", (0.8, 0.6920, 1.0)),
    },
}
