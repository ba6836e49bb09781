"""The league: every method on the same federations, tuned alike, with what it costs beside what it gives."""

from safari.league.directory import (
    League,
    begin,
    check_league,
    drop_if_empty,
    is_league,
    merge_leagues,
    read_league,
    to_finish,
    to_tune,
    tunes,
)
from safari.league.entries import KNOWN, Entry, entries_named, labels_of
from safari.league.page import league_page
from safari.league.settings import SETTINGS, Asked, Setting, asked_of

__all__ = [
    "KNOWN",
    "SETTINGS",
    "Asked",
    "Entry",
    "League",
    "Setting",
    "asked_of",
    "begin",
    "check_league",
    "drop_if_empty",
    "entries_named",
    "is_league",
    "labels_of",
    "league_page",
    "merge_leagues",
    "read_league",
    "to_finish",
    "to_tune",
    "tunes",
]
