"""The command `lff`."""

import sys


def params() -> None:
    """Parameter counts of the encodings beside the paper's."""
    from lff.experiments.params import page

    print(page(), end="")


def main() -> None:
    """Runs the subcommand that the command line names."""
    try:
        import tyro
    except ModuleNotFoundError:
        sys.exit("lff: the command needs what training and reporting need: pip install 'lff[experiments]'")
    app = tyro.extras.SubcommandApp()
    app.command(params)
    app.cli(prog="lff", description="Positional encodings for positions with any number of coordinates.")
