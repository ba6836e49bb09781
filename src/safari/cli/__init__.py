"""The command `safari`. Signals are looked after first, and only then is anything heavy imported."""

import sys

from safari.cli import signals
from safari.names import lazily

__getattr__ = lazily(__name__, {"application": ("app",)})


def main() -> None:
    """Run the command."""
    signals.look_after()
    from safari.cli.application import app

    try:
        app()
    except SystemExit:
        signals.leave_if_asked()
        raise
    except KeyboardInterrupt:
        sys.exit(signals.FIRST + signals.INTERRUPT)
