"""`lff explore`: a page of similarity maps that follow the pointer, computed in the browser from weights that travel with it."""

from lff.experiments.explore.export import export as export
from lff.experiments.explore.export import files as files
from lff.experiments.explore.kept import collect as collect
from lff.experiments.explore.links import BESIDE as BESIDE
from lff.experiments.explore.links import address as address
from lff.experiments.explore.node import node as node
from lff.experiments.explore.server import Server as Server
from lff.experiments.explore.server import run as run
