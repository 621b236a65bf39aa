"""The experiments of the transferability paper."""
