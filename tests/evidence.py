"""What `make fuzz` and `make machine` found, kept as data beside the benchmarks' results."""

import json
import os
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results"


def keep(name: str, command: str, found: dict[str, Any], part: str | None = None) -> None:
    """Write what was found to `name`.json, or one part of it, with command, commit, machine and date."""
    from safari.experiment.versions import provenance

    file = RESULTS / f"{name}.json"
    load = [round(one, 1) for one in os.getloadavg()] if hasattr(os, "getloadavg") else []
    made = {**found, "load": load, "made": {**provenance(), "command": command}}
    if part is not None:
        before = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
        made = {**before, part: made}
    file.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
