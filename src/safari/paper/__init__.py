"""The paper: its numbers, the protocol that fills its gaps, its tables redone."""

from safari.paper.compare import Comparison, compare_table
from safari.paper.effects import Effect, effects_of
from safari.paper.numbers import PaperRow, PaperTable, paper_tables
from safari.paper.protocol import DATASETS, Setting, cell_of
from safari.paper.recipes import reproduction, settings_of, tables_named

__all__ = [
    "DATASETS",
    "Comparison",
    "Effect",
    "PaperRow",
    "PaperTable",
    "Setting",
    "cell_of",
    "compare_table",
    "effects_of",
    "paper_tables",
    "reproduction",
    "settings_of",
    "tables_named",
]
