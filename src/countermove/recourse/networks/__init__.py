"""Who provably has no recourse before a network: linear relaxation with branch and bound.

What a person may do is relaxed to a box of whole or any steps, listed states and linear rows;
premises are left out, so that a proof covers more than what is allowed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from countermove._types import Floats, Index, Mask
from countermove.execution import pieces
from countermove.people import Cost
from countermove.people.feasible import FeasibleActions
from countermove.recourse.networks._bounds import KINDS, Layers, PricedRoom, tangents
from countermove.recourse.problem import MARGIN, SearchProblem
from countermove.scores.dense import DenseNetwork, dense_network

__all__ = ["NetworkProofs", "network_of", "prove"]

DOUBLE = 2.0**-53
SOFTENED = 2.1e-9
"""What torch leaves off a softplus beyond 20, where it takes the line."""
OURS = 16.0
"""Roundings of a bound beside one of the score: as many lines and sums are built on the same."""


@dataclass(frozen=True)
class NetworkProofs:
    """What branch and bound found out about some people.

    Attributes
    ----------
    least
        No allowed action that reaches the target costs less, shape (n,): the limit where none
        does within it, so infinite where none does at all.
    proven_none
        Whether no allowed action within the limit reaches the target.
    action
        An action that reaches it, (n, d), where the search came upon one; else NaN.
    nodes
        Nodes looked at per person.
    """

    least: Floats
    proven_none: Mask
    action: Floats
    nodes: Index


def network_of(problem: SearchProblem) -> DenseNetwork | None:
    """Return the network that people are judged by, None where nothing can be proven about it."""
    if problem.slope is not None or problem.consequences is not None:
        return None
    return dense_network(problem.score)


def prove(
    problem: SearchProblem,
    network: DenseNetwork,
    limit: Floats | float,
    nodes: int,
    cheapest: bool = False,
) -> NetworkProofs:
    """Prove for every person that no allowed action costs less than a limit, or find one.

    Parameters
    ----------
    problem
        The people; the target is what is aimed at, and a proof holds `MARGIN` short of it.
    network
        Of the problem, see `network_of`.
    limit
        Of the cost, for all or for each; infinite: whatever it costs.
    nodes
        Looked at per person at most.
    cheapest
        Go on for the cheapest action; else the search ends at the first one it comes upon.
    """
    from countermove.recourse.networks._search import ANY, CHEAPEST, NONE, prove_rows

    n, d = problem.X.shape
    limits = np.broadcast_to(np.asarray(limit, np.float64), (n,)).copy()
    used = problem.feasible.used
    feasible = problem.feasible.only(used)
    room, b = _room(feasible, problem.cost, used, d)
    low, high, bounded = _ends(feasible, room, limits)
    who = np.flatnonzero(bounded)
    least, none = np.zeros(n), np.zeros(n, bool)
    action, count = np.full((n, d), np.nan), np.zeros(n, np.intp)
    if not who.size or not used.size:
        return NetworkProofs(least, none, action, count)
    X, states, allowed = problem.X[who], *_states(feasible, who)
    base = X @ network.weights[0].T + network.offsets[0]
    target = np.broadcast_to(np.asarray(problem.target, np.float64), (n,))[who]
    below = 2.5 * MARGIN * (1.0 + np.abs(target)) + _rounding(network, X, used, low, high, who)
    given = (base, low[who], high[who], states, allowed, b[who])
    asked = (target - below, target, limits[who])
    out = (np.empty(len(who), np.int64), np.empty(len(who)), np.zeros((len(who), len(used))),
           np.empty(len(who), np.int64), np.zeros(len(who), bool))  # fmt: skip
    tries = 0 if feasible.premises else CHEAPEST if cheapest else ANY
    layers = _layers(network, used)
    for rows in pieces(len(who)):
        people = [tuple(part[rows] for part in parts) for parts in (given, asked, out)]
        prove_rows(layers, room, *people[:2], nodes, tries, people[2])
    met = out[4]
    least[who] = np.where(met & (not cheapest), 0.0, out[1])
    none[who], count[who] = (out[0] == NONE) & ~met, out[3]
    action[who[met]] = 0.0
    action[np.ix_(who[met], used)] = out[2][met]
    return NetworkProofs(least, none, action, count)


def _layers(network: DenseNetwork, used: Index) -> Layers:
    """Return a network as its kernel reads it, of the columns that move."""
    later = [np.ravel(weights) for weights in network.weights[1:]]
    flat = np.concatenate([np.zeros(0), *later])
    return Layers(
        np.array([len(offset) for offset in network.offsets]),
        np.array([KINDS[kind] for kind in network.activations]),
        np.array(network.leaks),
        np.ascontiguousarray(network.weights[0][:, used]),
        flat,
        np.abs(flat),
        np.concatenate(network.offsets),
        np.ascontiguousarray(network.weight),
        network.bias,
        tangents(),
    )


def _room(feasible: FeasibleActions, cost: Cost, used: Index, d: int) -> tuple[PricedRoom, Floats]:
    """Return what may be done as the kernel reads it, and the offsets of its rows, (n, rows)."""
    n, m = feasible.low.shape
    together = {int(j) for part in feasible.listed for j in part.columns}
    numbers = np.array([j for j in range(m) if j not in together], np.int64)
    counts = [part.allowed.shape[1] for part in feasible.listed]
    weights, kink = _prices(cost, d)
    kinked = bool((kink != 0.0).any())
    A = np.zeros((0, m)) if feasible.A is None else feasible.A
    b = np.zeros((n, 0)) if feasible.b is None else feasible.b
    if kinked:  # max(0, v.δ) is within the limit: the kernel knows the limit
        A, b = np.vstack([A, -kink[used]]), np.hstack([b, np.zeros((n, 1))])
    block = np.cumsum([0, *counts])
    halves = np.divide(0.5, weights, out=np.zeros(d), where=weights > 0.0)
    prices = (weights[used], halves[used], kink[used])
    room = PricedRoom(
        numbers, feasible.step.copy(), block, *prices, kinked=kinked, A=np.ascontiguousarray(A)
    )
    return room, np.ascontiguousarray(b)


def _prices(cost: Cost, d: int) -> tuple[Floats, Floats]:
    """Return prices of squares and of the kink that together never exceed the cost."""
    shape = cost.canonical(d)
    if shape is None:  # a conic cost: only the allowed actions bound what is searched
        return np.zeros(d), np.zeros(d)
    weights, kink = (
        np.zeros(d) if part is None else np.array(part.detach().numpy(), np.float64)
        for part in (shape.weights, shape.kink)
    )
    if shape.matrix is not None:
        matrix = np.array(shape.matrix.detach().numpy(), np.float64)
        root = np.sqrt(matrix.diagonal())
        share = np.linalg.eigvalsh(matrix / root / root[:, None])[0] * (1.0 - 1e-9)
        weights = weights + max(share, 0.0) * matrix.diagonal()
    return weights, kink


def _ends(
    feasible: FeasibleActions, room: PricedRoom, limits: Floats
) -> tuple[Floats, Floats, Mask]:
    """Return the ends of every column, and whose are all finite."""
    with np.errstate(divide="ignore", invalid="ignore"):
        reach = np.sqrt(limits[:, None] / room.weights)
    reach = np.where(np.isnan(reach), np.inf, reach)
    low = np.where(feasible.open_low, -reach, feasible.low)
    high = np.where(feasible.open_high, reach, feasible.high)
    bounded: Mask = np.asarray((np.isfinite(low) & np.isfinite(high)).all(axis=1))
    return low, high, bounded


def _states(feasible: FeasibleActions, who: Index) -> tuple[Floats, Mask]:
    """Return what every listed state changes, (n, S, m), and who may choose it, (n, S)."""
    n, m = len(who), feasible.low.shape[1]
    parts, allowed = [np.zeros((n, 0, m))], [np.zeros((n, 0), bool)]
    for part in feasible.listed:
        change = np.zeros((n, part.allowed.shape[1], m))
        change[:, :, part.columns] = part.change[who]
        parts.append(change)
        allowed.append(part.allowed[who])
    return np.concatenate(parts, axis=1), np.concatenate(allowed, axis=1)


def _rounding(
    network: DenseNetwork, X: Floats, used: Index, low: Floats, high: Floats, who: Index
) -> Floats:
    r"""Return how far rounding may take a score above its bound, for each person.

    Sums of n terms are off by at most :math:`n u \sum|w||h|`, in double precision `OURS` times
    over for the lines that bounds are made of; a score in single precision is off by
    :math:`4\sqrt n\,u\sum|w||h|`, which independent roundings exceed once in a thousand.
    """
    far = np.abs(X)
    far[:, used] += np.maximum(np.abs(low[who]), np.abs(high[who]))
    single = network.roundoff > 2.0 * DOUBLE
    size, off = far, np.zeros_like(far)
    layers = zip(
        (*network.weights, network.weight[None]),
        (network.constant, *network.offsets[1:], np.array([network.bias])),
        (*network.activations, ""),
        strict=True,
    )
    for weights, offset, activation in layers:
        steep, n = np.abs(weights), weights.shape[1] + 2
        unit = OURS * n * DOUBLE + (4.0 * np.sqrt(n) * network.roundoff if single else 0.0)
        size = size @ steep.T + np.abs(offset)
        off = off @ steep.T + unit * size
        size = size + 1.0  # an activation of slope at most 1 adds at most its value at zero
        off = off + (SOFTENED if activation == "softplus" else 0.0)
    result: Floats = off[:, 0]
    return result
