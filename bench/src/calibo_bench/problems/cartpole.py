"""CartPole with an advantage actor-critic: OPT20 Sec. 4.3 and App. A.2.

The actor and the critic are networks with two hidden layers of ten tanh units, trained by Adam after every step on its
outcome: the reward and, if the episode continues, the critic's value of the next state.
"""

from collections.abc import Mapping
from functools import cache
from math import prod
from typing import Any

import numpy as np

from calibo.arrays import Array
from calibo.errors import InputError
from calibo.space import Float, Space
from calibo_bench.problems.synthetic import Instance, Problem

__all__ = ["BALANCING", "mean_reward"]

EPISODES, COUNTED, LONGEST = 500, 100, 200
UNITS = 10
ENTROPY = 0.01  # weight of the entropy of the policy


class Network:
    """Two hidden layers of tanh units and a linear output, with Adam [KB15]; all parameters lie in one array."""

    def __init__(self, inputs: int, outputs: int, rate: float, rng: np.random.Generator) -> None:
        sizes = [(inputs, UNITS), (UNITS, UNITS), (UNITS, outputs)]
        shapes: list[tuple[int, ...]] = [*sizes, *((size[1],) for size in sizes)]
        total = sum(prod(shape) for shape in shapes)
        self.rate, self.count = rate, 0
        self.flat, self.slope, self.mean, self.square = (np.zeros(total) for _ in range(4))
        ends = np.cumsum([0, *(prod(shape) for shape in shapes)])
        self.parts, self.slopes = (
            [flat[i:j].reshape(shape) for i, j, shape in zip(ends, ends[1:], shapes, strict=False)]
            for flat in (self.flat, self.slope)
        )
        for weights in self.parts[:3]:
            weights[:] = rng.normal(0.0, 1.0 / np.sqrt(len(weights)), weights.shape)
        self.parts[2] *= 0.1  # outputs close to zero at first

    def __call__(self, x: Array) -> Array:
        """(n, outputs) at states (n, inputs), or (outputs,) at one."""
        return self._layers(x)[2]

    def _layers(self, x: Array) -> tuple[Array, Array, Array]:
        one, two, three, a, b, c = self.parts
        first = np.tanh(x @ one + a)
        second = np.tanh(first @ two + b)
        return first, second, second @ three + c

    def descend(self, x: Array, by_output: Array) -> None:
        """One step of Adam, given the derivatives (n, outputs) of a loss by the outputs at ``x``."""
        first, second, _ = self._layers(x)
        by_second = by_output @ self.parts[2].T * (1.0 - second * second)
        by_first = by_second @ self.parts[1].T * (1.0 - first * first)
        for i, (inward, outward) in enumerate(((x, by_first), (first, by_second), (second, by_output))):
            np.matmul(inward.T, outward, out=self.slopes[i])
            outward.sum(axis=0, out=self.slopes[i + 3])
        self.count += 1
        self.mean += 0.1 * (self.slope - self.mean)
        self.square += 0.001 * (self.slope * self.slope - self.square)
        size = np.sqrt(self.square / (1.0 - 0.999**self.count)) + 1e-8
        self.flat -= self.rate / (1.0 - 0.9**self.count) * self.mean / size


def mean_reward(discount: float, actor_rate: float, critic_rate: float, rng: np.random.Generator) -> float:
    """Highest mean reward over 100 consecutive episodes out of 500; the reward is the number of steps, at most 200."""
    env = _environment()
    actor, critic = Network(4, 2, actor_rate, rng), Network(4, 1, critic_rate, rng)
    rewards = []
    for _ in range(EPISODES):
        state, _ = env.reset(seed=int(rng.integers(2**31)))
        total, over = 0.0, False
        while not over:
            score = actor(state)
            action = int(rng.random() * (1.0 + np.exp(min(score[0] - score[1], 50.0))) < 1.0)
            after, reward, fallen, late, _ = env.step(action)
            rest = 0.0 if fallen else float(critic(after)[0])
            _learn(actor, critic, state[None], action, float(reward) + discount * rest)
            total, over, state = total + float(reward), bool(fallen or late), after
        rewards.append(total)
    means = np.convolve(rewards, np.full(COUNTED, 1.0 / COUNTED), mode="valid")
    return float(means.max())


def _learn(actor: Network, critic: Network, state: Array, action: int, outcome: float) -> None:
    """One update of both, by the outcome of an action in a state (1, 4)."""
    advantage = outcome - critic(state)
    scores = actor(state)
    p = np.exp(scores - scores.max())
    p /= p.sum()
    chosen = np.eye(2)[[action]]
    # -advantage log p(action) - ENTROPY times the entropy of p
    log_p = np.log(np.maximum(p, 1e-12))
    by_scores = (p - chosen) * advantage + ENTROPY * p * (log_p - (p * log_p).sum())
    actor.descend(state, by_scores)
    critic.descend(state, -advantage)


@cache
def _environment() -> Any:
    try:
        import gymnasium
    except ImportError:
        raise InputError("CartPole needs Gymnasium. Run `pip install calibo-bench[papers]`.") from None
    return gymnasium.make("CartPole-v1", max_episode_steps=LONGEST, disable_env_checker=True)


SPACE = {"discount": Float(0.9, 1.0), "actor_rate": Float(1e-6, 0.01), "critic_rate": Float(1e-6, 0.01)}


def _trained(params: Mapping[str, Any], rng: np.random.Generator) -> float:
    """To be minimised."""
    return -mean_reward(params["discount"], params["actor_rate"], params["critic_rate"], rng)


@cache
def _instance() -> Instance:
    def usual(params: Mapping[str, Any]) -> float:
        return _trained(params, np.random.default_rng(0))

    return Instance(Space(SPACE), usual, None, samples=8, drawn=_trained, bound=-float(LONGEST))


BALANCING = (Problem("a2c-cartpole", lambda _: _instance()),)
