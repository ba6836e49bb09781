"""`safari algorithms`: the methods, grouped by idea; or one of them."""

import json
from typing import Annotated

import typer

from safari.cli.session import command, show


def algorithms_command(
    name: Annotated[
        str | None, typer.Argument(help="A method in detail: a name, module:Class or file.py:Class.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The same as JSON.")] = False,
) -> None:
    """List the methods: paper, what each needs and costs, and what it cannot do; or show one of them."""
    with command():
        from safari.experiment.methods import all_methods, method
        from safari.report.methods import method_page, methods_table

        if name is not None:
            found = method(name)
            print(json.dumps(found, indent=2)) if as_json else show(method_page(found))
        elif as_json:
            print(json.dumps([facts for _, group in all_methods() for facts in group], indent=2))
        else:
            show(methods_table(all_methods()))
