"""How advice is looked for: the cheapest action, its margin against a refit, causes, round amounts.

Each step keeps what the steps before it have reached.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from countermove.people import ActionSet
from countermove.recourse._preferences import (
    Preference,
    other_options,
    prefer_causal,
    search_preferred,
)
from countermove.recourse._rounding import rounded
from countermove.recourse._search import Proposals, SearchMethod, SearchProblem, Settings
from countermove.recourse.lasting import Margin


@dataclass(frozen=True)
class AdviceSearch:
    """A method, how hard it searches, what is preferred, and the margin against a refit."""

    method: SearchMethod
    settings: Settings
    preference: Preference
    refits: Margin

    def cheapest(self, problem: SearchProblem) -> Proposals:
        """Return the cheapest actions, without a margin against a refit."""
        return search_preferred(problem, self.method, self.settings, self.preference)

    def lasting(self, problem: SearchProblem, cheapest: Proposals) -> Proposals:
        """Return actions that outlast a refit where that is asked for and possible."""
        plain = replace(self.preference, beyond=0.0)
        find = partial(
            search_preferred, method=self.method, settings=self.settings, preference=plain
        )
        return self.refits.outlasting(find, problem, cheapest, self.preference.beyond)

    def causal(self, problem: SearchProblem, found: Proposals) -> Proposals:
        """Return actions that leave alone what does not cause the outcome, where that is cheap."""
        if not self.preference.not_causal:
            return found
        kept = self.refits.kept(problem, found.action, self.preference.beyond)
        return prefer_causal(problem, self._asked, self.preference, found, kept)

    def rounded(
        self, problem: SearchProblem, allowed: ActionSet, found: Proposals, digits: int | None
    ) -> Proposals:
        """Return actions in round amounts; as they are without a number of digits."""
        if digits is None:
            return found
        kept = self.refits.kept(problem, found.action, self.preference.beyond)
        most = self.preference.most_paid
        return found._replace(action=rounded(kept, allowed, found.action, digits, most))

    def others(self, problem: SearchProblem, first: Proposals, options: int) -> list[Proposals]:
        """Return alternatives to the first actions."""
        return other_options(problem, self._asked, first, options)

    def _asked(self, problem: SearchProblem) -> Proposals:
        """Return the cheapest actions with their margin against a refit where they can have it."""
        return self.lasting(problem, self.cheapest(problem))
