"""Transferability: what deployment does to the error."""

from countermove.transfer.holdout import error_after_response_bound

__all__ = ["error_after_response_bound"]
