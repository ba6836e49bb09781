"""TLS and node keys: who is registered trains, everyone else is refused."""

import json
import shlex
import subprocess

from fleet_processes import NAUGHTY, PATIENCE, ROOT, deploying, environment, started

SHOWN = "examples/flower/deploy.sh examples/flower/pytorch --only"
"""How the command of docs/flower.md begins that is run here, with an app that trains for a moment."""


def test_tls_and_authentication_let_only_registered_nodes_in(tmp_path):
    state = tmp_path / "state"
    page = (ROOT / "docs" / "flower.md").read_text()
    shown = shlex.split(next(line for line in page.splitlines() if line.startswith(SHOWN)))
    shown = [str(NAUGHTY) if word == "examples/flower/pytorch" else word for word in shown]
    done = subprocess.run(
        deploying(*shown[1:], "--work", tmp_path / "work", "--names", "seven eight", "--check-restart",
         "--run-config", f'rounds=1 deadline={PATIENCE} checkpoint="{state}"'),
        env=environment(), cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    started(f"{' '.join(shown)}: two nodes, TLS")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "refused: unregistered key" in done.stdout
    assert "refused: plaintext" in done.stdout
    assert "restarted: the SuperLink knows its 2 keys" in done.stdout
    about = json.loads((max((state / "checkpoint").glob("round-*")) / "about.json").read_text())
    assert sorted(about["fleet"]["keys"]) == ["eight", "seven"]
    assert json.loads((state / "summary.json").read_text())["never_took_part"] == list("23456789")
