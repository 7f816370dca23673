"""Our own experiments, each a target of `calibo-bench reproduce`: defaults, recalibration, search spaces, run time."""

from calibo_bench.experiments.calibration import CALIBRATION
from calibo_bench.experiments.choices import CHOICES
from calibo_bench.experiments.costs import CALIBRATION_COST, WARPING_COST
from calibo_bench.experiments.deciding import DECIDING
from calibo_bench.experiments.experience import EXPERIENCE
from calibo_bench.experiments.failures import FAILURES
from calibo_bench.experiments.forrester import FORRESTER
from calibo_bench.experiments.honesty import HONESTY
from calibo_bench.experiments.leaderboards import LEADERBOARDS
from calibo_bench.experiments.parallel import PARALLEL
from calibo_bench.experiments.recalibrators import RECALIBRATORS
from calibo_bench.experiments.spaces import SPACES
from calibo_bench.experiments.speed import SPEED
from calibo_bench.experiments.stopping import STOPPING
from calibo_bench.experiments.storage import STORAGE

__all__ = ["EXPERIMENTS"]

EXPERIMENTS = (
    *LEADERBOARDS,
    CHOICES,
    SPACES,
    FORRESTER,
    CALIBRATION,
    RECALIBRATORS,
    SPEED,
    CALIBRATION_COST,
    WARPING_COST,
    STORAGE,
    PARALLEL,
    FAILURES,
    *HONESTY,
    EXPERIENCE,
    *STOPPING,
    *DECIDING,
)
