"""A log that is only ever appended to: what a save writes does not grow with the rounds before it."""

import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from safari.experiment.checksums import Damaged
from safari.experiment.writing import writing


class Lines:
    """Rows as JSON, one a line, in a file. A mark says how much of the file a checkpoint stands for.

    Whatever is behind the last mark belongs to a save that did not end, and is written over.
    """

    def __init__(self, path: Path):
        self.path = path
        self._bytes, self._sum = 0, hashlib.sha256()

    @writing()
    def append(self, rows: Iterable[dict[str, Any]]) -> dict[str, Any]:
        """Write rows behind the last mark; the new mark, once they are on the disk."""
        content = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
        with self.path.open("r+b" if self.path.exists() else "x+b") as file:
            file.truncate(self._bytes)
            file.seek(self._bytes)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        self._bytes += len(content)
        self._sum.update(content)
        return {"bytes": self._bytes, "sha256": self._sum.hexdigest()}

    def read(self, mark: dict[str, Any]) -> list[dict[str, Any]]:
        """The rows up to a mark, behind which the next are appended.

        Raises:
            Damaged: if they are not what was written.
        """
        try:
            with self.path.open("rb") as file:
                content = file.read(mark["bytes"])
        except OSError as error:
            raise Damaged(self.path, f"cannot be read ({error.strerror})") from None
        found = hashlib.sha256(content)
        if len(content) != mark["bytes"] or found.hexdigest() != mark["sha256"]:
            raise Damaged(self.path, f"is damaged within its first {mark['bytes']} bytes")
        self._bytes, self._sum = mark["bytes"], found
        return [json.loads(line) for line in content.splitlines()]
