"""`python -m lff` is the command `lff`, for torchrun and SLURM."""

from lff.experiments.cli import main

main()
