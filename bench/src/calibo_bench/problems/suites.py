"""Suites of problems."""

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from calibo.errors import InputError
from calibo.space import Categorical
from calibo_bench.problems.cartpole import BALANCING
from calibo_bench.problems.forecasting import EXPERIENCE, HONESTY, HONESTY_HELD_OUT
from calibo_bench.problems.held_out import EPIDEMIC, FEW_MINIMA, MANY_MINIMA, moved, peaks, powell, trid, vincent
from calibo_bench.problems.lda import TOPICS
from calibo_bench.problems.mnist import TRAINING
from calibo_bench.problems.source_tasks import RELATIONS, after
from calibo_bench.problems.synthetic import (
    Problem,
    cropped,
    drawn,
    heavy_tailed,
    heteroscedastic,
    integers,
    noisy,
    on_cube,
    plain,
    proportional,
    warped,
    with_outliers,
)
from calibo_bench.problems.tables import TABLES, table
from calibo_bench.problems.tuning import CONFIRMATION, DEVELOPMENT
from calibo_bench.problems.xgboost import BOOSTING

__all__ = ["GROUPS", "HELD_OUT", "KINDS", "SUITES", "problems_of"]

KINDS: Mapping[str, tuple[str, ...]] = {
    "ill-conditioned": ("beale", "goldstein_price", "rosenbrock4", "dixon_price4"),
    "few local minima": ("forrester", "branin", "camel6", "hartmann3", "hartmann6", "styblinski5"),
    "many local minima": ("ackley2", "ackley5", "alpine5", "drop_wave", "levy5", "rastrigin3"),
}
"""The functions without noise among the development problems, by what makes them hard."""

NOISES = ("noisy", "heteroscedastic", "heavy_tailed", "proportional", "outliers")

VARIANTS: Mapping[str, Callable[[Problem], Problem]] = {
    "noisy": noisy,
    "heteroscedastic": heteroscedastic,
    "heavy_tailed": heavy_tailed,
    "warped": warped,
    "integers": integers,
    **{f"after_{kind}": partial(after, kind=kind) for kind in RELATIONS},
}

CLEAN = (
    "ackley2",
    "hartmann6",
    "alpine5",
    "drop_wave",
    "styblinski5",
    "forrester",
    "branin",
    "camel6",
    "cosines",
    "beale",
    "levy6",
    "rosenbrock4",
)
"""The functions without noise on which calibration is evaluated."""

SUITES: Mapping[str, list[Problem]] = {
    "smoke": [cropped("branin"), noisy(cropped("hartmann3")), integers(cropped("camel6"))],
    "functions": [
        *(cropped(name) for names in KINDS.values() for name in names),
        cropped("levy10"),
        cropped("rosenbrock10"),
        *(noisy(cropped(name)) for name in ("branin", "hartmann6", "levy5")),
        heteroscedastic(cropped("branin")),
        *(heavy_tailed(cropped(name)) for name in ("hartmann3", "styblinski5")),
    ],
    "functions-held-out": [
        *MANY_MINIMA,
        *FEW_MINIMA,
        noisy(moved("vincent4", vincent, [np.exp(np.pi / 20)] * 4, 3.0, rotated=True, minimum=-1.0), 0.2),
        proportional(moved("powell4", powell, [0.0] * 4, 8.0, rotated=False)),
        with_outliers(peaks(4)),
        noisy(EPIDEMIC),
        heteroscedastic(moved("trid5", trid, [5.0, 8.0, 9.0, 8.0, 5.0], 40.0, rotated=False)),
    ],
    "tuning": [
        *(task.problem() for task in DEVELOPMENT),
        *(table(name) for name in ("lda", "svm", "logistic", "fcnet-protein")),
    ],
    "tuning-held-out": [
        *(task.problem() for task in CONFIRMATION),
        *(table(name) for name in ("fcnet-naval", "fcnet-parkinsons", "fcnet-slice")),
    ],
    "calibration": [
        *(cropped(name) for name in CLEAN),
        *(noisy(cropped(name)) for name in ("branin", "hartmann6")),
        *(heteroscedastic(cropped(name)) for name in ("branin", "levy5")),
        *(heavy_tailed(cropped(name)) for name in ("camel6", "hartmann3")),
        *(warped(cropped(name)) for name in ("branin", "alpine5")),
    ],
    "papers": [
        plain(name)
        for name in (
            "forrester",
            "ackley2",
            "alpine10",
            "camel6",
            "cosines",
            "beale",
            "mccormick",
            "different_powers2",
            "cross_in_tray",
            "drop_wave",
            "branin",
            "hartmann3",
            "hartmann6",
            "gsobol5",
        )
    ],
    "noisy": [noisy(cropped(name)) for name in ("branin", "hartmann6", "levy5", "ackley5")],
    "odd-noise": [
        *(heteroscedastic(cropped(name)) for name in ("branin", "hartmann6")),
        *(heavy_tailed(cropped(name)) for name in ("branin", "hartmann6")),
    ],
    "warped": [warped(cropped(name)) for name in ("branin", "hartmann3", "alpine5", "levy5")],
    "mixed": [integers(cropped(name)) for name in ("branin", "hartmann6", "styblinski5", "ackley5")],
    "tables": [table(name) for name in TABLES],
    "training": list(TRAINING),
    "topics": list(TOPICS),
    "known-optimum": [*BOOSTING, *BALANCING],
    "drawn": [drawn(2, 0.25), warped(drawn(2, 0.25))],
    "choices": [
        on_cube("branin"),
        on_cube("camel6"),
        on_cube("hartmann3"),
        on_cube("ackley3", -10, 15),
        on_cube("rosenbrock4"),
        on_cube("alpine4", -7, 10),
        on_cube("levy5", -6, 10),
        on_cube("styblinski5"),
        on_cube("hartmann6"),
    ],
    "honesty": HONESTY,
    "honesty-held-out": HONESTY_HELD_OUT,
    "experience": EXPERIENCE,
    "after": [after(cropped(name), kind) for name in ("branin", "hartmann3", "levy3") for kind in RELATIONS],
}


HELD_OUT = frozenset(
    problem.name for suite in ("functions-held-out", "tuning-held-out", "honesty-held-out") for problem in SUITES[suite]
)
"""Problems on which a finished default is confirmed, once."""

_FUNCTIONS = [problem.name for suite in ("functions", "functions-held-out") for problem in SUITES[suite]]
_TASKS = [problem.name for suite in ("tuning", "tuning-held-out") for problem in SUITES[suite]]

GROUPS: Mapping[str, tuple[str, ...]] = {
    **{kind: tuple(f"{name}-cropped" for name in names) for kind, names in KINDS.items()},
    "held out, many local minima": tuple(problem.name for problem in MANY_MINIMA),
    "held out, few local minima": tuple(problem.name for problem in FEW_MINIMA),
    "ten or more parameters": tuple(
        name for name in _FUNCTIONS if name.partition("-cropped")[0].endswith(("10", "20"))
    ),
    "noisy": tuple(name for name in _FUNCTIONS if name.endswith(NOISES)),
    "tables": tuple(name for name in _TASKS if name.startswith("table-")),
    "cross-validation": tuple(f"cv-{task.name}" for task in (*DEVELOPMENT, *CONFIRMATION)),
    "with categories": tuple(
        f"cv-{task.name}"
        for task in (*DEVELOPMENT, *CONFIRMATION)
        if any(isinstance(parameter, Categorical) for parameter in task.space.values())
    ),
    "with conditional parameters": tuple(
        f"cv-{task.name}" for task in (*DEVELOPMENT, *CONFIRMATION) if task.conditions
    ),
}
"""Problems by kind, for reports."""


def problems_of(names: str) -> list[Problem]:
    """The problems of comma-separated suites and problem names."""
    known = {problem.name: problem for suite in SUITES.values() for problem in suite}
    found: dict[str, Problem] = {}
    for name in names.split(","):
        if name in SUITES:
            found.update((problem.name, problem) for problem in SUITES[name])
        else:
            problem = known[name] if name in known else _named(name)
            found[problem.name] = problem
    return list(found.values())


def _named(name: str) -> Problem:
    """A function and its variants, as in levy3-cropped-noisy."""
    base, *words = name.split("-")
    try:
        problem = cropped(base) if words[:1] == ["cropped"] else plain(base)
        problem.at(0)
        for word in words[1:] if words[:1] == ["cropped"] else words:
            if problem.at(0).source_tasks is not tuple:
                raise InputError("a source task must come last")  # it lies in the space of the problem before it
            problem = VARIANTS[word](problem)
    except (InputError, KeyError):
        raise InputError(
            f"--suite must be one of {list(SUITES)}, or a problem such as levy3-cropped-noisy, but got {name!r}."
        ) from None
    return problem
