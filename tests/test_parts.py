"""Parts as data: what is registered, what is stored, and the same in every process."""

import json
import subprocess
import sys
from dataclasses import dataclass, field, fields, is_dataclass
from functools import partial
from inspect import isabstract
from types import MappingProxyType

import numpy as np
import pytest

from calibo import CaliboWarning, InputError, Strategy, acquisition, calibration, models
from calibo.acquisition import LowerBound
from calibo.calibration import Gate, Recalibrator, ShiftScaleRecalibrator
from calibo.gp import kernels
from calibo.gp.kernels import RBF, FunctionKernel, Linear, Matern52, Scaled, register_kernel
from calibo.models import GaussianProcess, SourceTask, Transfer
from calibo.optimum import Optimum
from calibo.parts import build, identity, register, registered, spec
from calibo.presets import PARTS, PRESETS, get_strategy
from calibo.priors import FLAT, HyperPriors
from calibo.research import EmpiricalRecalibrator
from calibo.search import Search
from calibo.side_information import SideInformation

from .conftest import observations


def strategies():
    """Every preset, and the plain one with every part."""
    yield from PRESETS.items()
    for part in PARTS:
        yield f"plain+{part}", get_strategy(f"plain+{part}")


@pytest.mark.parametrize(
    ("name", "strategy"), list(strategies()), ids=lambda value: value if isinstance(value, str) else ""
)
def test_a_strategy_survives_as_json(name, strategy):
    stored = json.loads(json.dumps(spec(strategy), allow_nan=False))
    assert build(stored) == strategy
    assert identity(build(stored)) == identity(strategy)


def test_different_strategies_have_different_identities():
    made = dict(strategies())
    assert len({identity(strategy) for strategy in made.values()}) == len(set(made.values()))


def test_the_order_of_fields_and_the_kind_of_a_number_do_not_matter():
    stored = spec(LowerBound(2))
    assert (
        identity(build(dict(reversed(stored.items()))))
        == identity(LowerBound(2.0))
        == identity(LowerBound(np.int64(2)))
    )
    assert identity(LowerBound(2)) != identity(LowerBound(2.5))


def test_a_name_is_that_of_one_class():
    @dataclass(frozen=True)
    class Other:
        pass

    with pytest.raises(InputError, match=r"`name` must be unused, but 'lcb' is LowerBound\. Choose another name\."):
        register("lcb")(Other)
    with pytest.raises(InputError, match="must be a frozen dataclass"):
        register("open")(dataclass(type("Open", (), {})))
    with pytest.raises(InputError, match="`name` must be a string"):
        register("")


def test_names_do_not_follow_from_classes():
    assert registered()["gaussian-process"] is GaussianProcess
    assert not any(name == cls.__name__ for name, cls in registered().items())


def test_a_subclass_needs_a_name_of_its_own():
    @dataclass(frozen=True)
    class Finer(GaussianProcess):
        pass

    with pytest.raises(
        InputError, match=r"A part must have a registered name, but got a .*Finer\. Decorate its class with `@calibo"
    ):
        Strategy(surrogate=Finer())


@pytest.mark.parametrize(
    ("stored", "words"),
    [
        ({"part": "theirs"}, "The part 'theirs' is not registered here"),
        ({"part": ["x"]}, "is not registered here"),
        ({}, "The part None is not registered here"),
        ({"part": "source", "name": "a", "key": "b"}, "holds data and cannot be built"),
        ({"part": "sum", "first": {"part": "rbf"}}, "The part 'sum' cannot be built from its spec"),
        ({"part": "lcb", "kappa": {"float": "x"}}, "must be 'inf', '-inf' or 'nan'"),
        ({"part": "lcb", "delta": 7}, "`delta` must lie between 0 and 1"),
    ],
)
def test_only_registered_parts_are_built(stored, words):
    with pytest.raises(InputError, match=words):
        build(stored)


def test_a_field_of_a_later_version_is_left_out_and_said():
    with pytest.warns(CaliboWarning, match=r"'lcb' was stored with \['mood'\], which this version"):
        assert build({**spec(LowerBound(1.5)), "mood": 3}) == LowerBound(1.5)
    assert build({"part": "lcb", "kappa": 1.5}) == LowerBound(1.5), "a field that is missing has its default"


def test_fields_that_are_not_compared_are_no_identity():
    @register("counted")
    @dataclass(frozen=True)
    class Counted:
        depth: int = 1
        calls: list = field(default_factory=list, compare=False)

    first, second = Counted(), Counted(calls=[1, 2])
    assert identity(first) == identity(second)
    assert spec(first) == {"part": "counted", "depth": 1}


def test_large_whole_numbers_are_told_apart():
    @register("numbered")
    @dataclass(frozen=True)
    class Numbered:
        n: int = 0
        half: float = field(init=False, default=0.5)

    assert identity(Numbered(2**53)) != identity(Numbered(2**53 + 1))
    assert build(spec(Numbered(3))) == Numbered(3), "what is not given follows"


def test_earlier_tasks_are_told_apart_by_their_outcomes():
    x, y = np.random.default_rng(0).random((4, 2)), np.arange(4.0)
    one, same, other = (SourceTask("a", x, values, np.full(4, np.nan)) for values in (y, y.copy(), y + 1.0))
    assert one == same != other
    assert identity(Transfer((one,))) == identity(Transfer((same,))) != identity(Transfer((other,)))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"surrogate": 5}, "`surrogate` must be of type Surrogate, but got 5"),
        ({"acquisition": LowerBound}, "`acquisition` must be of type Acquisition, but got <class"),
        ({"recalibrator": "gate"}, "`recalibrator` must be of type Recalibrator, but got 'gate'"),
        ({"score_source": None}, "`score_source` must be of type ScoreSource, but got None"),
    ],
)
def test_a_strategy_says_what_is_no_part(options, words):
    with pytest.raises(InputError, match=words):
        Strategy(**options)


# kernels


def rough(columns):
    return Scaled(RBF()).on(columns)


def test_a_bare_function_is_refused_and_a_registered_one_is_a_kernel():
    with pytest.raises(InputError, match=r"`kernel` must be a kernel such as Matern52\(\), but got <function rough"):
        GaussianProcess(rough)
    with pytest.raises(InputError, match=r"Write Matern52\(\)\."):
        GaussianProcess(Matern52)
    kernel = register_kernel("rough")(rough)
    assert kernel == FunctionKernel("rough")
    assert build(spec(GaussianProcess(kernel))) == GaussianProcess(kernel)
    fitted = GaussianProcess(kernel).fit(observations(8), rng=np.random.default_rng(0))
    assert np.isfinite(fitted.log_evidence)
    with pytest.raises(InputError, match="`name` must be unused, but 'rough' is <function rough"):
        register_kernel("rough")(partial(rough))
    register_kernel("short")(lambda columns: RBF().on(columns))
    with pytest.raises(InputError, match="`name` must be unused"):
        register_kernel("short")(lambda columns: Linear().on(columns))
    with pytest.raises(InputError, match=r"The kernel 'elsewhere' is not registered here\. Call `register_kernel"):
        FunctionKernel("elsewhere").on((0,))


def test_a_transform_that_is_a_function_is_refused():
    with pytest.raises(InputError, match=r"got the function 'log'|got a numpy"):
        GaussianProcess(transform=np.log)


def test_kernels_add_and_multiply():
    kernel = RBF() + Linear() * Matern52()
    assert kernel == build(spec(kernel))
    covariance = kernel.on((0, 2))
    x = np.random.default_rng(0).random((5, 3))
    theta = np.log([0.3, 0.4, 1.0, 2.0, 0.5, 0.6])
    parts = [
        part.on((0, 2)).cross(theta[i : i + 2], x)(x)[0] for part, i in ((RBF(), 0), (Linear(), 2), (Matern52(), 4))
    ]
    np.testing.assert_allclose(covariance.cross(theta, x)(x)[0], parts[0] + parts[1] * parts[2])
    for wrong in (3, "rbf", None):
        with pytest.raises(TypeError):
            RBF() + wrong
        with pytest.raises(TypeError):
            RBF() * wrong


@register("shy")
@dataclass(frozen=True)
class Shy(RBF):
    """A kernel with a hyperparameter of which no prior knows."""

    def on(self, columns):
        inner = super().on(columns)
        return replace_labels(inner, ("roughness",) * len(inner.labels))


def replace_labels(covariance, labels):
    class Renamed(type(covariance)):
        @property
        def labels(self):
            return labels

    return Renamed(covariance.profile, covariance.columns)


def test_a_label_that_no_prior_knows_is_told():
    data = observations(8)
    with pytest.raises(InputError, match=r"`priors` must have a prior of 'roughness'.* Pass `HyperPriors\(extra="):
        GaussianProcess(Shy()).fit(data, rng=np.random.default_rng(0))
    more = HyperPriors(extra=(("roughness", HyperPriors().lengthscale),))
    assert build(spec(more)) == more
    fitted = GaussianProcess(Shy(), priors=more).fit(data, rng=np.random.default_rng(0))
    assert np.isfinite(fitted.log_evidence)


def test_lists_of_priors_are_taken():
    more = HyperPriors(extra=[("roughness", HyperPriors().lengthscale)])
    assert np.isfinite(
        GaussianProcess(Shy(), priors=more).fit(observations(8), rng=np.random.default_rng(0)).log_evidence
    )


@pytest.mark.parametrize("spec", [MappingProxyType({"part": "rbf"}), {"part": "search", "candidates": np.int64(5)}])
def test_specs_that_are_no_plain_json_are_built(spec):
    assert build(spec) in (RBF(), Search(candidates=5))


def test_flat_priors_are_flat_in_everything():
    for prior in (getattr(FLAT, each.name) for each in fields(FLAT) if each.name != "extra"):
        assert prior.std == np.inf


# recalibrators


@register("listed")
@dataclass(frozen=True)
class Listed(Recalibrator):
    """A recalibrator that cannot be hashed."""

    shifts: list = field(default_factory=lambda: [0.5])

    def fit(self, scores):
        return ShiftScaleRecalibrator(shift_prior=self.shifts[0]).fit(scores)


def test_a_gate_takes_recalibrators_that_cannot_be_hashed():
    scores = np.random.default_rng(0).normal(0.5, 1.3, 20)
    z = np.linspace(-2.0, 2.0, 5)
    np.testing.assert_array_equal(
        Gate(Listed()).fit(scores)(z), Gate(ShiftScaleRecalibrator(shift_prior=0.5)).fit(scores)(z)
    )
    assert Gate(EmpiricalRecalibrator()).fit(scores)(0.0) != Gate(Listed()).fit(scores)(0.0)


# processes

SCRIPT = """
import json, sys
import numpy as np
from calibo import Float, Optimizer
from calibo.gp import kernels
from calibo.gp.kernels import RBF, Linear, register_kernel
from calibo.optimum import Optimum
from calibo.presets import get_strategy
from calibo.models import GaussianProcess
from dataclasses import replace

@register_kernel("mine")
def mine(columns):
    return (RBF() + Linear()).on(columns)

found = {}
for name in sys.argv[1:]:
    if name == "custom kernel, sampled":
        strategy = replace(get_strategy("plain"), surrogate=GaussianProcess(mine, samples=4))
    else:
        strategy = get_strategy(name)
    needed = strategy.surrogate.lacks_optimum or strategy.acquisition.lacks_optimum
    known = {"known_optimum": -0.1} if needed else {}
    optimizer = Optimizer({"x": Float(0, 1), "y": Float(0, 1)}, strategy=strategy, seed=3, **known)
    rng = np.random.default_rng(1)
    for _ in range(9):
        x, y = rng.random(2).tolist()
        optimizer.tell({"x": x, "y": y}, (x - 0.3) ** 2 + np.sin(5 * y))
    params = [optimizer.ask(), optimizer.ask()]
    found[name] = [value.hex() for each in params for value in each.values()]
print(json.dumps(found))
"""


def test_the_same_seed_and_history_suggest_the_same_in_three_processes():
    names = ["default", "ei", "lcb", "pi", "papers", *(f"plain+{part}" for part in PARTS), "custom kernel, sampled"]
    running = [
        subprocess.Popen([sys.executable, "-W", "ignore", "-c", SCRIPT, *names], stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    first, *others = [json.loads(process.communicate()[0]) for process in running]
    assert set(first) == set(names)
    for other in others:
        assert other == first


def test_every_recipe_that_we_offer_is_registered():
    known = set(registered().values())
    for module, method in ((models, "refit"), (acquisition, "prepare"), (calibration, "scores"), (kernels, "on")):
        offered = [value for name, value in vars(module).items() if not name.startswith("_")]
        recipes = [cls for cls in offered if is_dataclass(cls) and hasattr(cls, method) and not isabstract(cls)]
        assert recipes
        unnamed = {cls.__name__ for cls in recipes if cls not in known} - {
            "KnownAcquisition",
            "ColumnKernel",
            "PairKernel",
        }
        assert not unnamed
    informed = get_strategy("default").with_side_information(SideInformation(optimum=Optimum(0.0)))
    assert build(spec(informed)) == informed
