"""Advice that was given and not yet expired: kept, honoured, counted against a challenger."""

from countermove.production.open_advice.honour import Honoured
from countermove.production.open_advice.keys import KEY_VARIABLE, advice_key
from countermove.production.open_advice.register import AdviceRegister

__all__ = [
    "KEY_VARIABLE",
    "AdviceRegister",
    "Honoured",
    "advice_key",
]
