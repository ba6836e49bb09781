"""TLS and node keys: who is registered trains, everyone else is refused."""

import json
import subprocess

from fleet_processes import DEPLOY, NAUGHTY, environment


def test_tls_and_authentication_let_only_registered_nodes_in(tmp_path):
    state = tmp_path / "state"
    done = subprocess.run(
        ["bash", DEPLOY, NAUGHTY, "--work", tmp_path / "work", "--nodes", "10", "--only", "7 8", "--secure",
         "--check-refusals", "--check-restart",
         "--run-config", f'rounds=1 deadline=120.0 checkpoint="{state}"'],
        env=environment(), capture_output=True, text=True, timeout=480,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "refused: unregistered key" in done.stdout
    assert "refused: plaintext" in done.stdout
    assert "restarted: the SuperLink knows its 2 keys" in done.stdout
    about = json.loads((max((state / "checkpoint").glob("round-*")) / "about.json").read_text())
    assert sorted(about["fleet"]["keys"]) == ["7", "8"]
    assert json.loads((state / "summary.json").read_text())["excluded"] == [0, 1, 2, 3, 4, 5, 6, 9]
