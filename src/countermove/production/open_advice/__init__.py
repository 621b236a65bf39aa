"""Advice that was given and not yet expired: kept, honoured, counted against a challenger."""

from countermove.production.open_advice.honour import HONOURED, GivenAdvice, Honoured
from countermove.production.open_advice.keys import KEY_VARIABLE, advice_key
from countermove.production.open_advice.register import AdviceRegister, BatchAdvice

__all__ = [
    "HONOURED",
    "KEY_VARIABLE",
    "AdviceRegister",
    "BatchAdvice",
    "GivenAdvice",
    "Honoured",
    "advice_key",
]
