"""The experiments of the SERM paper."""
