"""The compiled rows of the loss after response: the sums its derivatives are made of.

The loss is the logistic one or, with a ``width`` above zero, the count of wrong decisions smoothed
over that width. Rows go through in blocks that stay in the cache, each summed by one product.
"""

from __future__ import annotations

import math

import numba
import numpy as np

BLOCK, EIGHT = 512, 8
FAR = 80.0
"""Margins below minus this count as this, what is beyond added to the loss: products of eight odds
stay finite."""

jit = numba.njit(cache=True, error_model="numpy", nogil=True, fastmath={"reassoc", "nsz"})


@jit
def _far_odds(margins, care, odds):  # type: ignore[no-untyped-def]
    """Write e to the minus margin, cut off; return by how much the losses are beyond."""
    beyond = 0.0
    for b in range(len(margins)):
        exponent = -margins[b]
        if exponent > FAR:
            beyond += care[b] * (exponent - FAR)
            exponent = FAR
        odds[b] = math.exp(exponent)
    return beyond


@jit
def _near_odds(own, favoured, fall, rise, odds):  # type: ignore[no-untyped-def]
    """Write the odds of people whose own are known, each times that of their gain."""
    for b in range(len(odds)):
        odds[b] = own[b] * (fall if favoured[b] else rise)


@jit
def _logistic(odds, care, slope, bend):  # type: ignore[no-untyped-def]
    """Write two derivatives of the logistic loss in the margin; return the sum of losses."""
    total = 0.0
    for b in range(len(odds)):
        likely = 1.0 / (1.0 + odds[b])
        wrong = care[b] * (odds[b] * likely)
        slope[b], bend[b] = -wrong, wrong * likely
    # The sum of logarithms of 1 + odds, by the logarithm of a product of eight.
    for start in range(0, len(odds), EIGHT):
        product, least = 1.0, care[start]
        for b in range(start, min(start + EIGHT, len(odds))):
            product *= 1.0 + odds[b]
            if care[b] != least:
                total += (care[b] - least) * math.log1p(odds[b])
        total += least * math.log(product)
    return total


@jit
def _smoothed(odds, care, width, slope, bend):  # type: ignore[no-untyped-def]
    """Write the same of the smoothed count of wrong decisions, in the score's own units."""
    total = 0.0
    for b in range(len(odds)):
        likely = 1.0 / (1.0 + odds[b])
        wrong = odds[b] * likely
        steep = care[b] * wrong * likely / width
        slope[b], bend[b] = -steep, steep * (1.0 - 2.0 * wrong) / width
        total += care[b] * wrong
    return total


@jit
def _derivatives(odds, care, width, slope, bend):  # type: ignore[no-untyped-def]
    """Write two derivatives of the loss in the margin; return the sum of losses."""
    if width > 0.0:
        return _smoothed(odds, care, width, slope, bend)
    return _logistic(odds, care, slope, bend)


@jit
def _prepare(y, scores, heed, unit, furthest, own, care):  # type: ignore[no-untyped-def]
    """Write own odds and weight of a block's people; say whether nobody ends far away."""
    widest = 0.0
    for b in range(len(y)):
        care[b] = heed[b]
        widest = max(widest, abs(scores[b]))
    if widest / unit + furthest >= FAR:
        return False
    for b in range(len(y)):
        own[b] = math.exp(-y[b] * scores[b] / unit)
    return True


@jit
def _joined(y, factor, slope, bend, first, second, pulled, sums):  # type: ignore[no-untyped-def]
    """Add a kind's derivatives in the score to everybody's; ``factor`` is (n,) or (1,)."""
    many = len(factor) > 1
    by_reach, crossed, square = 0.0, 0.0, 0.0
    for b in range(len(y)):
        along = factor[b] if many else factor[0]
        turned, bent = y[b] * slope[b], bend[b] * along
        first[b] += turned
        second[b] += bend[b]
        pulled[b] += bent
        by_reach += turned * along
        crossed += bent
        square += bent * along
    sums[0] += by_reach
    sums[1] += crossed
    sums[2] += square


@jit
def _add_products(work, rows, totals, ends):  # type: ignore[no-untyped-def]
    """Add the products of a block's rows with the columns that wait for them."""
    size, d = rows.shape
    for j in range(d):
        for b in range(size):
            work[j, b] = work[d, b] * rows[b, j]
    ends[0] += work[d, :size].sum()
    ends[1] += work[d + 1, :size].sum()
    if size == work.shape[1]:
        totals += np.dot(work, rows)
    else:
        totals += np.dot(np.ascontiguousarray(work[:, :size]), rows)


@jit
def shared_rows(X, y, scores, heed, shares, factors, reaches, group, width, totals, ends, kinds):  # type: ignore[no-untyped-def]
    """Return the sum of losses over kinds of people who move along one direction each.

    ``heed`` weighs people; ``factors`` is (K, n) or (K, 1); kinds of one ``group`` move along
    one line. With first and second a person's derivatives in the score, and bent the second
    derivative of a kind times its factor, are added: to ``totals`` (d + 2 + G, d) the products of
    second x | second | first | bent, summed over a group, with the rows; to ``ends`` the sums of
    second and first; to ``kinds`` (K, 3), per kind, those of the first derivative times factor, of
    bent, and of bent times factor.
    """
    n, d = X.shape
    many, unit, total, furthest = factors.shape[1] > 1, width if width > 0.0 else 1.0, 0.0, 0.0
    work = np.empty((len(totals), BLOCK))
    own, care, odds, slope, bend = np.empty((5, BLOCK))
    for k in range(len(shares)):
        furthest = max(furthest, np.abs(factors[k]).max() * abs(reaches[k]) / unit)
    for low in range(0, n, BLOCK):
        size = min(BLOCK, n - low)
        here = slice(low, low + size)
        work[d:] = 0.0
        near = _prepare(y[here], scores[here], heed[here], unit, furthest, own, care) and not many
        for k in range(len(shares)):
            factor = factors[k, here] if many else factors[k]
            if near:
                gain = factor[0] * reaches[k] / unit
                fall, rise = math.exp(-gain), math.exp(gain)
                _near_odds(own, y[here] > 0.0, fall, rise, odds[:size])
            else:
                margins = y[here] * (scores[here] + factor * reaches[k]) / unit
                beyond = _far_odds(margins, care[:size], odds)
                total += 0.0 if width > 0.0 else shares[k] * beyond
            weights = shares[k] * care[:size]
            total += _derivatives(odds[:size], weights, width, slope, bend)
            pulled = work[d + 2 + group[k]]
            _joined(y[here], factor, slope, bend, work[d + 1], work[d], pulled, kinds[k])
        _add_products(work, X[here], totals, ends)
    return total


@jit
def own_rows(  # type: ignore[no-untyped-def]
    X, y, scores, heed, share, moved, reach, multiplier, weight, price, free, flat, width, totals,
    ends, bowl,
):  # fmt: skip
    """Return the sum of losses of people who meet bounds of their own, ``moved`` by them.

    To ``totals`` (d + 2, d) and ``ends`` are added the sums of `shared_rows`, of the rows where
    they have moved to; to ``bowl`` (d, d) the first derivatives times the Hessians of the reach.
    """
    n, d = X.shape
    unit, total = width if width > 0.0 else 1.0, 0.0
    work = np.empty((d + 2, BLOCK))
    own, care, odds, slope, bend = np.empty((5, BLOCK))
    for low in range(0, n, BLOCK):
        size = min(BLOCK, n - low)
        here = slice(low, low + size)
        _prepare(y[here], scores[here], share * heed[here], unit, FAR, own, care)
        margins = y[here] * (scores[here] + reach[here]) / unit
        beyond = _far_odds(margins, care[:size], odds)
        total += 0.0 if width > 0.0 else beyond
        total += _derivatives(odds[:size], care, width, slope, bend)
        for b in range(size):
            work[d, b], work[d + 1, b] = bend[b], y[low + b] * slope[b]
        _add_products(work, moved[here], totals, ends)
        by = work[d + 1, :size] * multiplier[here]
        if free.shape[0] > 0:
            _add_cut_bowls(free[here], flat[here], by, weight, price, bowl)
        else:
            _add_bowls(X[here], moved[here], multiplier[here], by, weight, price, bowl)
    return total


@jit
def _add_bowls(X, moved, multiplier, by, weight, price, bowl):  # type: ignore[no-untyped-def]
    """Add λ (A⁻¹ - u uᵀ / uᵀAu) over what no bound stops, times first derivatives."""
    n, d = X.shape
    free, pull = np.empty((n, d)), np.empty((n, d))
    least, along, steep, straight = np.empty(d), np.empty(d), np.empty(d), np.zeros(d)
    for j in range(d):
        along[j], steep[j] = weight[j] / price[j], weight[j] * weight[j] / price[j]
        least[j] = abs(along[j]) * (1.0 - 1e-9)
    for b in range(n):
        square = 0.0
        for j in range(d):
            action = abs(moved[b, j] - X[b, j])
            moves = (action > 0.0) & (least[j] > 0.0) & (action >= multiplier[b] * least[j])
            free[b, j] = along[j] if moves else 0.0
            square += steep[j] if moves else 0.0
            straight[j] += by[b] if moves else 0.0
        share = by[b] / square if square > 0.0 else 0.0
        for j in range(d):
            pull[b, j] = share * free[b, j]
    for j in range(d):
        bowl[j, j] += straight[j] / price[j]
    bowl -= np.dot(free.T, pull)


@jit
def _add_cut_bowls(free, flat, by, weight, price, bowl):  # type: ignore[no-untyped-def]
    """Add the same where rows hold people too: T = A⁻¹ - Σ f fᵀ stands in A⁻¹'s place."""
    n, d = free.shape
    along, pull = np.empty((n, d)), np.empty((n, d))
    for b in range(n):
        for j in range(d):
            along[b, j] = weight[j] / price[j] if free[b, j] else 0.0
            bowl[j, j] += by[b] / price[j] if free[b, j] else 0.0
        for r in range(flat.shape[1]):
            size, share = 0.0, 0.0
            for j in range(d):
                size += abs(flat[b, r, j])
                share += flat[b, r, j] * weight[j]
            if size == 0.0:
                continue
            for j in range(d):
                along[b, j] -= share * flat[b, r, j]
                for k in range(d):
                    bowl[j, k] -= by[b] * flat[b, r, j] * flat[b, r, k]
        square = 0.0
        for j in range(d):
            square += along[b, j] * weight[j]
        share = by[b] / square if square > 0.0 else 0.0
        for j in range(d):
            pull[b, j] = share * along[b, j]
    bowl -= np.dot(along.T, pull)


@jit
def curve_rows(X, y, heed, width, after, totals, sums):  # type: ignore[no-untyped-def]
    """Return the sum of losses of people who end where ``after``, an `AfterCurve`, says.

    With L a person's loss in the s, T and c of the curve, to ``totals`` (d + 4, d) are added the
    products of L_ss x | L_ss | L_s | L_sT | L_sc with the rows, to ``sums`` those of L_ss, L_s,
    L_sT, L_sc, L_T, L_c, L_TT, L_Tc and L_cc.
    """
    n, d = X.shape
    total, work = 0.0, np.empty((d + 4, BLOCK))
    care, odds, slope, bend = np.empty((4, BLOCK))
    for low in range(0, n, BLOCK):
        size = min(BLOCK, n - low)
        here = slice(low, low + size)
        for b in range(size):
            care[b] = heed[low + b]
        total += _far_odds(y[here] * after.after[here], care[:size], odds)
        total += _logistic(odds[:size], care, slope, bend)
        _chain(y[here], low, width, slope, bend, after, work[d:], sums)
        for k in range(2, 4):
            sums[k] += work[d + k, :size].sum()
        _add_products(work, X[here], totals, sums[:2])
    return total


@jit
def _chain(y, low, width, slope, bend, after, columns, sums):  # type: ignore[no-untyped-def]
    """Write the derivatives in s that multiply rows; add the others to their sums."""
    by_width, by_constant, width_twice, both, constant_twice = 0.0, 0.0, 0.0, 0.0, 0.0
    for b in range(len(y)):
        i, first, second = low + b, y[b] * slope[b], bend[b]
        start, pace, wide = after.start[i], after.by_score[i], after.by_width[i]
        bent, twice = after.by_constant[i], first * after.by_score_twice[i]
        mixed = first * after.by_score_and_constant[i]
        columns[0, b] = second * pace * pace + twice
        columns[1, b] = first * pace
        columns[2, b] = second * pace * wide - start * twice
        columns[3, b] = second * pace * bent + mixed
        by_width += first * wide
        by_constant += first * bent
        width_twice += second * wide * wide + start * start * twice
        both += second * wide * bent + first * bent / width - start * mixed
        constant_twice += second * bent * bent + first * after.by_constant_twice[i]
    sums[4] += by_width
    sums[5] += by_constant
    sums[6] += width_twice
    sums[7] += both
    sums[8] += constant_twice
