"""The command `lff`."""

import sys
from typing import NoReturn


def main() -> None:
    """Runs the subcommand that the command line names; what a user can mend ends it with a line and exit code 2."""
    try:
        import tyro
    except ModuleNotFoundError:
        sys.exit("lff: the command needs what training and reporting need: pip install 'lff[experiments]'")
    from lff.experiments import commands
    from lff.experiments.problems import Problem
    from lff.experiments.tasks.captioning import commands as captions
    from lff.experiments.tasks.detection.commands import detect
    from lff.experiments.tasks.generation.commands import generate

    app = tyro.extras.SubcommandApp()
    for command in (commands.Compare, commands.Train):  # their options depend on the task and the preset: see `commands.parse`
        app.command(commands.placeholder(command), name=command.__name__.lower())
    seen = (commands.report, commands.figures, commands.explore)
    of_a_run = (generate, detect, captions.caption, captions.score)
    for plain in (*seen, *of_a_run, captions.positions, commands.bench, commands.params):
        app.command(plain)
    arguments = sys.argv[1:]
    try:
        if arguments and arguments[0] in ("compare", "train"):
            commands.run(arguments)
        else:
            app.cli(prog="lff", description="Positional encodings for positions with any number of coordinates.")
    except Problem as problem:
        _end(f"lff: {problem}", 2)
    except KeyboardInterrupt:
        _end("lff: interrupted", 130)


def _end(text: str, code: int) -> NoReturn:
    print(text, file=sys.stderr)
    raise SystemExit(code)
