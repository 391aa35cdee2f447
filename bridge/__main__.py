"""The `agentworks` command, also as `python -m bridge`."""

from __future__ import annotations

import sys

from bridge.cli.main import run_command


def main() -> None:
    """Run the command line and end the process with its exit code."""
    sys.exit(run_command(sys.argv[1:]))


if __name__ == "__main__":
    main()
