"""Fetching published files: pooch, checked against the published checksums."""

import os
from dataclasses import dataclass
from pathlib import Path

from safari.errors import InputError


@dataclass(frozen=True)
class Download:
    """What to fetch: mirrors, files with their checksums, and what unpacks them."""

    mirrors: tuple[str, ...]
    files: dict[str, str]
    unpack: bool = False


def cache_folder() -> Path:
    """Where fetched data lies: SAFARI_CACHE, else the user's cache folder."""
    import pooch

    return Path(os.environ.get("SAFARI_CACHE") or pooch.os_cache("safari"))


def fetch(name: str, download: Download, target: Path, progress: bool = True) -> Path:
    """Fetch every file of a data set into `target`; files already there are only checked."""
    import pooch

    pooch.get_logger().setLevel("WARNING")
    processor = pooch.Untar(extract_dir=".") if download.unpack else None
    for file, checksum in download.files.items():
        failure: Exception | None = None
        for mirror in download.mirrors:
            try:
                pooch.retrieve(
                    f"{mirror}/{file}", checksum, fname=file, path=target,
                    processor=processor, progressbar=progress,
                )  # fmt: skip
                failure = None
                break
            except (OSError, ValueError) as error:
                failure = error
        if failure is not None:
            raise InputError(
                "source",
                name,
                f"{file} could not be fetched ({type(failure).__name__}); check the network, "
                "or set SAFARI_DATA to a folder that holds the published files",
            )
    return target
