"""`python -m safari`."""

from safari.cli import main

main()
