"""The figures of the paper, made again from the runs of comparisons: `lff figures DIR`."""

from lff.experiments.figures.make import Made as Made
from lff.experiments.figures.make import listing as listing
from lff.experiments.figures.make import write as write
