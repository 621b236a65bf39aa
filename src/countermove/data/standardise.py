"""One border between the users' units and the library's.

A feature :math:`x` becomes :math:`z = (x - m) / s`, an action :math:`a` becomes
:math:`a / s`; both have inverses here, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from countermove._types import Floats, Mask
from countermove.data.missing import filled_in
from countermove.errors import CountermoveError, DataError, ModelFileError, ParameterError, shown

if TYPE_CHECKING:
    from countermove.data.relations import ObservedRanges

ROUNDING = 8.0 * float(np.finfo(np.float64).eps)
"""Share of its size by which a column may vary without being more than rounding."""


@dataclass(frozen=True, eq=False)
class Standardiser:
    r"""Means and scales of the training rows.

    Parameters
    ----------
    mean
        :math:`m`, shape (d,), in original units.
    scale
        :math:`s > 0`, shape (d,), in original units.
    names
        The d columns.
    ranges
        Which values of the training rows are usual; None where nobody looked.
    fill
        What stands in for cells without a value, shape (d,), original units, NaN for columns
        that have none; None: no cell may be missing.
    """

    mean: Floats
    scale: Floats
    names: tuple[str, ...]
    ranges: ObservedRanges | None = None
    fill: Floats | None = None

    def __post_init__(self) -> None:
        names = tuple(self.names)
        for field in ("mean", "scale"):
            values = np.array(getattr(self, field), dtype=np.float64)
            if values.shape != (len(names),) or not np.isfinite(values).all():
                raise ParameterError(
                    f"{field} has shape {values.shape}; expected {len(names)} finite numbers"
                )
            values.flags.writeable = False
            object.__setattr__(self, field, values)
        if self.fill is not None:
            fill = np.array(self.fill, dtype=np.float64)
            if fill.shape != (len(names),) or np.isinf(fill).any():
                raise ParameterError(f"fill has shape {fill.shape}; expected {len(names)} numbers")
            fill.flags.writeable = False
            object.__setattr__(self, "fill", fill)
        if not (self.scale > 0).all():
            raise ParameterError("every scale must be positive")
        object.__setattr__(self, "names", names)

    @classmethod
    def fit(
        cls,
        X: ArrayLike,
        names: Sequence[str],
        divide_by_root_d: bool = False,
        keep_constant: bool | Mask = False,
        sample_weight: Floats | None = None,
    ) -> Standardiser:
        r"""Fit on the training rows, and on them only.

        Parameters
        ----------
        X
            Training features, shape (n, d), original units.
        names
            The d columns.
        divide_by_root_d
            Use :math:`s = \sqrt{d}\,\sigma` instead of :math:`s = \sigma`, as the
            strategic-classification papers do: the squared norm of a row then does
            not grow with the number of features.
        keep_constant
            Give a column that does not vary (of those marked) the scale 1, its own unit, instead
            of refusing it.
        sample_weight
            How often each row counts, shape (n,), all positive; None: once.

        Raises
        ------
        DataError
            If a value is not finite, or a column does not vary (unless that is kept).
        """
        X = np.asarray(X, dtype=np.float64)
        if X.ndim != 2 or X.shape[1] != len(names) or not X.size:
            raise DataError(f"X has shape {X.shape}; expected rows of {len(names)} features")
        broken = np.flatnonzero(~np.isfinite(X).all(axis=1))
        if broken.size:
            raise DataError(
                f"cannot standardise: values that are not finite in rows {shown(broken)}",
                rows=broken,
            )
        with np.errstate(over="ignore", invalid="ignore"):
            if sample_weight is None:
                mean, spread = X.mean(axis=0), X.std(axis=0)
            else:
                mean = np.average(X, axis=0, weights=sample_weight)
                spread = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=sample_weight))
        # Rounding can leave a column of equal values a spread of its own.
        low, high = X.min(axis=0), X.max(axis=0)
        spread = np.where(low == high, 0.0, spread)
        if np.any(keep_constant):
            rounding = ROUNDING * np.maximum(np.abs(low), np.abs(high))
            with np.errstate(over="ignore"):
                spread = np.where((high - low <= rounding) & keep_constant, 1.0, spread)
        return cls.from_moments(mean, spread, names, len(X), divide_by_root_d)

    @classmethod
    def from_moments(
        cls, mean: Floats, spread: Floats, names: Sequence[str], n_rows: int, divide_by_root_d: bool
    ) -> Standardiser:
        """Return the standardiser of known means and standard deviations; see `fit`."""
        overflow = ~(np.isfinite(mean) & np.isfinite(spread))
        if overflow.any():
            listed = shown(repr(names[column]) for column in np.flatnonzero(overflow).tolist())
            raise DataError(f"cannot standardise: {listed} is too large; use a larger unit")
        constant = spread == 0
        if constant.any():
            listed = shown(repr(names[column]) for column in np.flatnonzero(constant).tolist())
            raise DataError(
                f"cannot standardise: {listed} do(es) not vary over the {n_rows} training rows; "
                "take it out of the features, merge rare categories, or train on more rows"
            )
        root = np.sqrt(len(names)) if divide_by_root_d else 1.0
        return cls(mean, spread * root, tuple(names))

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return len(self.names)

    def transform(self, X: ArrayLike) -> Floats:
        """Return features in standardised units; what is NaN takes its fill, if it has one."""
        return (filled_in(self._columns(X), self.fill) - self.mean) / self.scale

    def inverse(self, Z: ArrayLike) -> Floats:
        """Return features in original units."""
        return self._columns(Z) * self.scale + self.mean

    def action_to_original(self, action: ArrayLike) -> Floats:
        """Return an action (a difference of features) in original units."""
        return self._columns(action) * self.scale

    def action_to_standard(self, action: ArrayLike) -> Floats:
        """Return an action (a difference of features) in standardised units."""
        return self._columns(action) / self.scale

    def to_json(self) -> dict[str, Any]:
        """Return plain lists; floats survive JSON exactly."""
        described: dict[str, Any] = {
            "mean": self.mean.tolist(),
            "scale": self.scale.tolist(),
            "names": list(self.names),
        }
        if self.ranges is not None:
            described["ranges"] = self.ranges.to_json()
        if self.fill is not None:
            described["fill"] = [None if np.isnan(value) else value for value in self.fill.tolist()]
        return described

    @classmethod
    def from_json(cls, description: Mapping[str, Any]) -> Standardiser:
        """Return what :meth:`to_json` described."""
        from countermove.data.relations import ObservedRanges

        try:
            ranges, fill = description.get("ranges"), description.get("fill")
            return cls(
                np.asarray(description["mean"], dtype=np.float64),
                np.asarray(description["scale"], dtype=np.float64),
                tuple(description["names"]),
                None if ranges is None else ObservedRanges.from_json(ranges),
                None if fill is None else np.array(fill, dtype=np.float64),
            )
        except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
            if isinstance(error, CountermoveError):
                raise
            raise ModelFileError(
                f"this is no standardiser: {type(error).__name__}: {str(error)[:200]}; restore its "
                "file, or make it with: kedro run --pipeline=ingest"
            ) from error

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Standardiser) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash((self.mean.tobytes(), self.scale.tobytes(), self.names))

    def _columns(self, values: ArrayLike) -> Floats:
        array = np.asarray(values, dtype=np.float64)
        if array.shape[-1:] != (self.n_features,):
            raise DataError(
                f"array of shape {array.shape} given; expected {self.n_features} columns "
                f"({shown(self.names)})"
            )
        return array
