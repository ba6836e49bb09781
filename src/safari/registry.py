"""What every noun has in common."""

import equinox as eqx


class Noun(eqx.Module):
    """A part of an experiment that a spec can name: frozen, typed, its fields the keys of a table."""
