"""The convex sub-problems of people with any convex cost, as differentiable layers.

One parametrised problem per shape of cost and actions, DPP-compliant, so that
nothing is compiled twice. The only file of the responses that meets CVXPY.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from countermove._types import Floats
from countermove.errors import CostError, SolverError, UnboundedResponseError
from countermove.people import ConicCost, Cost, QuadraticCost

Solver = Literal["MOREAU", "DIFFCP"]

TIGHT = 1e-11
"""Interior-point tolerance: actions are then good to about 1e-7."""
CHECKED, AGREE = 3, 1e-4
"""People on whom two solvers are compared, and how closely they have to agree."""
TINY = 1e-6
"""Weight of the squared action beside the score that is missing, per unit of slope."""
FEASIBLE = 1e-6
"""A solution that breaks the constraints by more than this is not accepted."""


@dataclass(frozen=True)
class LayerShape:
    """What a layer is compiled for: movable features, their bounds, and rows over them."""

    n_features: int
    columns: tuple[int, ...]
    below: tuple[int, ...]
    above: tuple[int, ...]
    held: tuple[int, ...] = ()  # those that somebody cannot move: their bounds are one
    rows: tuple[tuple[float, ...], ...] = ()


@dataclass
class SharedProblem:
    """Variables, parameters and constraints every sub-problem shares."""

    action: Any
    x: Any
    spent: Any
    columns: Any
    constraints: list[Any]
    price: Any = None
    rows: Floats | None = None
    parameters: list[Any] = field(default_factory=list)
    values: list[Callable[[ConicBatch], Tensor]] = field(default_factory=list)

    def with_epigraph(self) -> Any:
        """Return the cost as a variable that a layer can give back."""
        self.constraints.append(self.price <= self.spent)
        return self.spent

    def keep(self, used: list[Any]) -> None:
        """Forget the parameters a problem does not use (a cost may ignore x)."""
        known = {parameter.id for parameter in used}
        pairs = zip(self.parameters, self.values, strict=True)
        kept = [(parameter, value) for parameter, value in pairs if parameter.id in known]
        self.parameters = [parameter for parameter, _ in kept]
        self.values = [value for _, value in kept]

    def given(self, name: str, *shape: int) -> Any:
        """Register a parameter that the batch brings by name."""
        import cvxpy as cp

        return self.add(cp.Parameter(shape), lambda batch: batch.more[name])

    def add(self, parameter: Any, value: Callable[[ConicBatch], Tensor]) -> Any:
        """Register a parameter with the function that fills it."""
        self.parameters.append(parameter)
        self.values.append(value)
        return parameter


@dataclass(frozen=True)
class ConicBatch:
    """People with their constraints, and the tensors of the sub-problem at hand by name."""

    X: Tensor
    lo: Tensor
    hi: Tensor
    offsets: Tensor
    more: dict[str, Tensor]

    @property
    def held(self) -> Tensor:
        """What nobody can move, as 1; (n, d)."""
        return (self.lo == self.hi).to(torch.float64)


def shared_problem(cost: Cost, shape: LayerShape) -> SharedProblem:
    """Write the shared part: the epigraph of the cost and the allowed actions."""
    import cvxpy as cp

    columns = np.array(shape.columns, dtype=np.int64)
    action, spent = cp.Variable(len(columns)), cp.Variable()
    shared = SharedProblem(action, cp.Parameter(shape.n_features), spent, columns, [])
    shared.price = _cost_expression(cost, shared, shape.n_features)
    for kept, sign, name in ((shape.below, 1.0, "lo"), (shape.above, -1.0, "hi")):
        if kept:
            where = np.array(kept)
            bound = shared.add(cp.Parameter(len(kept)), _picker(name, columns[where]))
            shared.constraints.append(sign * action[where] >= sign * bound)
    if shape.held:
        # Two bounds that leave no inside mislead interior-point methods: an equation instead.
        where = np.array(shape.held)
        mask, at = cp.Parameter(len(where)), cp.Parameter(len(where))
        shared.add(mask, lambda batch: batch.held[:, columns[where]])
        shared.add(at, lambda batch: (batch.held * batch.lo)[:, columns[where]])
        shared.constraints.append(cp.multiply(mask, action[where]) == at)
    if shape.rows:
        shared.rows = np.array(shape.rows)
        offset = shared.add(cp.Parameter(len(shape.rows)), lambda batch: batch.offsets)
        shared.constraints.append(shared.rows @ action + offset >= 0)
    return shared


def proxy_layer(cost: Cost, shape: LayerShape, solver: Solver | None) -> Layer:
    """Return the concave proxy, with ``pull`` the slope of its straight part."""
    # max pull·δ - sqrt((a (s + w·δ) - 1)² + 1)/2 - c(δ)
    import cvxpy as cp

    shared = shared_problem(cost, shape)
    m = len(shape.columns)
    pull = shared.given("pull", m)
    steep = shared.given("steep", m)
    now = shared.given("now")
    root = cp.norm(cp.hstack([now + steep @ shared.action - 1.0, 1.0]), 2)
    price = shared.with_epigraph() if isinstance(cost, ConicCost) else shared.price
    objective = cp.Minimize(price + 0.5 * root - pull @ shared.action)
    return Layer(shared, objective, cost, solver)


def reach_layer(cost: Cost, shape: LayerShape, solver: Solver | None) -> Layer:
    r"""Return the reach, :math:`\max\{w\cdot\delta : c(\delta) \le budget\}`."""
    import cvxpy as cp

    shared = shared_problem(cost, shape)
    slope = shared.given("slope", len(shape.columns))
    budget = shared.given("budget")
    shared.constraints.append(shared.with_epigraph() <= budget)
    return Layer(shared, cp.Maximize(slope @ shared.action), cost, solver)


def crossing_layer(cost: Cost, shape: LayerShape, solver: Solver | None) -> Layer:
    r"""Return the cheapest crossing, :math:`\min\{c(\delta) : w\cdot\delta \ge need\}`."""
    import cvxpy as cp

    shared = shared_problem(cost, shape)
    slope = shared.given("slope", len(shape.columns))
    need = shared.given("need")
    shared.constraints.append(slope @ shared.action >= need)
    price = shared.with_epigraph() if isinstance(cost, ConicCost) else shared.price
    return Layer(shared, cp.Minimize(price), cost, solver)


def shortfall_layer(_: Cost, shape: LayerShape, solver: Solver | None) -> Layer:
    r"""Return the action that leaves least missing, :math:`\min\,(need - w\cdot\delta)_+`."""
    # No cost plays a part: it decides who can cross at all. The square of the action, small
    # enough not to be traded for score, keeps the solution unique.
    import cvxpy as cp

    shared = shared_problem(QuadraticCost(), shape)
    slope = shared.given("slope", len(shape.columns))
    need = shared.given("need")
    zero = shared.add(cp.Parameter(), lambda batch: batch.X.new_zeros(len(batch.X)))
    missing = cp.Variable()
    shared.constraints += [missing >= zero, missing >= need - slope @ shared.action]
    return Layer(shared, cp.Minimize(missing + TINY * shared.price), QuadraticCost(), solver)


LAYERS = {"reach": reach_layer, "crossing": crossing_layer, "shortfall": shortfall_layer}


def _picker(name: str, columns: Any) -> Callable[[ConicBatch], Tensor]:
    apart = {"lo": -1.0, "hi": 1.0}[name]
    return lambda batch: (getattr(batch, name) + apart * batch.held)[:, columns]


def _cost_expression(cost: Cost, shared: SharedProblem, d: int) -> Any:
    import cvxpy as cp

    columns = shared.columns
    if isinstance(cost, ConicCost):
        return _user_expression(cost, shared, d)
    shape = cost.canonical(d)
    if shape is None:
        raise CostError(f"{type(cost).__name__} has neither a closed form nor a CVXPY expression")
    total: Any = 0.0
    m = len(columns)

    def part(name: str) -> Tensor:
        now = cost.canonical(d)
        value: Tensor = getattr(now, name)
        return value[columns][:, columns] if name == "matrix" else value[columns]

    if shape.weights is not None:
        root = shared.add(cp.Parameter(m), lambda _: part("weights").sqrt())
        total = total + cp.sum_squares(cp.multiply(root, shared.action))
    if shape.matrix is not None:
        factor = shared.add(
            cp.Parameter((m, m)), lambda _: torch.linalg.cholesky(part("matrix")).T.contiguous()
        )
        total = total + cp.sum_squares(factor @ shared.action)
    if shape.kink is not None:
        # A parameter holds the zero: a constant bound on a variable is one MOREAU never sees.
        kink = shared.add(cp.Parameter(m), lambda _: part("kink"))
        zero = shared.add(cp.Parameter(), lambda batch: batch.X.new_zeros(len(batch.X)))
        above = cp.Variable()
        shared.constraints += [above >= zero, above >= kink @ shared.action]
        total = total + above
    return total


def _user_expression(cost: ConicCost, shared: SharedProblem, d: int) -> Any:
    import cvxpy as cp

    shared.add(shared.x, lambda batch: batch.X)
    place = np.eye(d)[:, shared.columns]
    factor = np.ones(d) if cost.factor is None else cost.factor
    arguments = {}
    for name, value in cost.parameters.items():
        sign = {cost.signs[name]: True} if name in cost.signs else {}
        parameter = cp.Parameter(tuple(value.shape), **sign)
        arguments[name] = shared.add(parameter, _constant(cost, name))
    here = cp.multiply(factor, shared.x) if cost.factor is not None else shared.x
    action = (factor[:, None] * place) @ shared.action
    if "action" in inspect.signature(cost.build).parameters:
        arguments["action"] = action
    expression = cost.build(here, here + action, **arguments)
    if not isinstance(expression, cp.Expression) or expression.size != 1:
        raise CostError(
            "build(x, x_new) of a conic cost must return one scalar CVXPY expression, "
            f"got {type(expression).__name__}"
        )
    if not expression.is_convex():
        raise CostError(
            f"the cost {expression} is not convex by CVXPY's rules (curvature "
            f"{expression.curvature}); the response would not be unique"
        )
    if not expression.is_dpp():
        raise CostError(
            f"the cost {expression} is convex but not parametrisable (DPP): every solve would "
            "recompile. Let x enter affinely; take the move from the argument `action` where it is "
            "multiplied by a parameter; write sum_squares(L.T @ action), not a parametric quad_form"
        )
    return cp.sum(expression)


def _constant(cost: ConicCost, name: str) -> Callable[[ConicBatch], Tensor]:
    return lambda _: cost.parameters[name]


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the layers' own warnings to themselves: batch sizes are ours to choose."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Batch size has changed")
        warnings.simplefilter("ignore", DeprecationWarning)
        yield


class _Quiet(torch.autograd.Function):
    """A layer whose forward and backward passes warn nobody."""

    @staticmethod
    def forward(ctx: Any, layer: Any, *values: Tensor) -> tuple[Tensor, ...]:
        wanted = any(ctx.needs_input_grad)
        leaves = [value.detach().requires_grad_(wanted) for value in values]
        with torch.set_grad_enabled(wanted), _quiet():
            outputs: tuple[Tensor, ...] = tuple(layer(*leaves))
        ctx.leaves, ctx.outputs = leaves, outputs
        return tuple(output.detach() for output in outputs)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        with torch.enable_grad(), _quiet():
            found = torch.autograd.grad(
                ctx.outputs, ctx.leaves, grads, allow_unused=True, retain_graph=True
            )
        return None, *found


class Layer:
    """A sub-problem that can be solved for a batch and differentiated."""

    def __init__(
        self, shared: SharedProblem, objective: Any, cost: Cost, solver: Solver | None
    ) -> None:
        import cvxpy as cp

        self.shared, self.cost = shared, cost
        self.problem = cp.Problem(objective, shared.constraints)
        if not self.problem.is_dcp(dpp=True):
            raise CostError("the cost does not give a DPP-compliant problem; see ConicCost")
        shared.keep(self.problem.parameters())
        self.order: tuple[Solver, ...] = ("MOREAU", "DIFFCP") if solver is None else (solver,)
        self._layers: dict[str, Any] = {}
        self._checked = solver is not None

    def solve(self, batch: ConicBatch) -> tuple[Tensor, Tensor]:
        """Return actions of the movable features, (n, m), and what they cost, (n,)."""
        values = self._values(batch)
        if not self._checked:
            self._check([value[:CHECKED] for value in values])
        failure: Exception | None = None
        for name in self.order:
            try:
                action, *spent = self._call(name, values)
            except _solver_failures() as error:
                failure = error
                continue
            if self._is_feasible(action, batch):
                return action, spent[0] if spent else self._price(action, batch)
            failure = SolverError(f"{name} returned a solution outside the constraints")
        if any(word in str(failure).lower() for word in ("unbounded", "dual infeasible")):
            raise UnboundedResponseError(
                "people can move without end at no cost, so no response exists; bound the actions "
                "or let the cost grow with distance"
            ) from failure
        raise SolverError(f"no solver found a response: {failure}") from failure

    def _values(self, batch: ConicBatch) -> list[Tensor]:
        values = []
        for parameter, value in zip(self.shared.parameters, self.shared.values, strict=True):
            tensor = value(batch).to(torch.float64)
            if not bool(torch.isfinite(tensor.detach()).all()):
                raise SolverError("a conic sub-problem was handed NaN or infinity")
            shape = tuple(parameter.shape)
            single = tensor.dim() == len(shape)
            values.append(tensor.expand(len(batch.X), *shape) if single else tensor)
        return values

    def _check(self, values: list[Tensor]) -> None:
        """Drop MOREAU unless it agrees with DIFFCP: it is known to lose some constant bounds."""
        self._checked = True
        try:
            with torch.no_grad():
                fast, exact = (self._call(name, values)[0] for name in ("MOREAU", "DIFFCP"))
            agree = bool(((fast - exact).abs() <= AGREE * (1.0 + exact.abs())).all())
        except _solver_failures():
            agree = False
        if not agree:
            self.order = ("DIFFCP",)

    def _call(self, name: Solver, values: list[Tensor]) -> tuple[Tensor, ...]:
        result: tuple[Tensor, ...] = _Quiet.apply(self._layer(name), *values)  # type: ignore[no-untyped-call]
        return result

    def _layer(self, name: Solver) -> Any:
        if name not in self._layers:
            from cvxpylayers.torch import CvxpyLayer

            tight = {"tol_gap_abs": TIGHT, "tol_gap_rel": TIGHT, "tol_feas": TIGHT}
            arguments: dict[str, Any] = {"solve_method": "Clarabel", **tight, "n_jobs_forward": 1}
            if name == "MOREAU":
                smooth = {"diff_smoothing_mu": 1e-10}
                arguments = {"solver": "ipm", "ipm_settings": tight | smooth, "device": "cpu"}
            wanted = [self.shared.action]
            if isinstance(self.cost, ConicCost):
                wanted.append(self.shared.spent)
            self._layers[name] = CvxpyLayer(
                self.problem,
                parameters=self.shared.parameters,
                variables=wanted,
                solver=name,
                solver_args=arguments,
            )
        return self._layers[name]

    def _price(self, action: Tensor, batch: ConicBatch) -> Tensor:
        columns = torch.from_numpy(self.shared.columns)
        full = action.new_zeros(batch.X.shape).index_copy(1, columns, action)
        return self.cost.price(torch.zeros_like(full), full)

    def _is_feasible(self, action: Tensor, batch: ConicBatch) -> bool:
        moves, columns = action.detach(), self.shared.columns
        lo, hi = batch.lo.detach()[:, columns], batch.hi.detach()[:, columns]
        inside = (moves >= lo - FEASIBLE) & (moves <= hi + FEASIBLE)
        good = (torch.isfinite(moves) & inside).all()
        if self.shared.rows is not None:
            slack = moves @ torch.from_numpy(self.shared.rows).T + batch.offsets
            good &= (slack >= -FEASIBLE * (1.0 + batch.offsets.abs())).all()
        return bool(good)


def _solver_failures() -> tuple[type[Exception], ...]:
    import cvxpy as cp
    import diffcp

    return (cp.error.SolverError, diffcp.SolverError, RuntimeError, ArithmeticError, ValueError)
