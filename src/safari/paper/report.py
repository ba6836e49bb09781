"""The report page of a reproduction's directory."""

from pathlib import Path

from safari.experiment.checksums import SPEC, read_checked
from safari.experiment.report import facts_of
from safari.paper.directory import read_reproduction
from safari.paper.page import reproduction_page
from safari.report.page import Page


def page_of(directory: Path) -> Page:
    """The page of the reproduction in `directory`, as far as it is finished."""
    found = read_reproduction(directory)
    spec = read_checked(directory / SPEC).decode()
    return reproduction_page(found, spec, facts_of(directory, found.finished))
