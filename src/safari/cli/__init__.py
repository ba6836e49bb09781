"""The command `safari`. Signals and streams are looked after first; then what is heavy is imported."""

import sys

from safari.cli import signals
from safari.names import lazily

__getattr__ = lazily(__name__, {"application": ("app",)})


def main() -> None:
    """Run the command."""
    signals.end_at_once()
    from safari.cli import streams

    streams.look_after()
    signals.look_after()
    from safari.cli.application import app

    try:
        app()
    except SystemExit as end:
        signals.leave_if_asked()
        sys.exit(streams.flushed() or end.code)
    except OSError as error:
        sys.exit(f"safari: {streams.refusal(error) or error}")
    except KeyboardInterrupt:
        sys.exit(signals.FIRST + signals.INTERRUPT)
