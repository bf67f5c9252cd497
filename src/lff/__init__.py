"""Positional encodings for Transformers over positions with any number of coordinates."""

from lff.adapters import load_swapped as load_swapped
from lff.adapters import swap as swap
from lff.adapters import unswap as unswap
from lff.adapters.fit import fit as fit
from lff.adapters.legacy import load_legacy as load_legacy
from lff.encodings import METHODS as METHODS
from lff.encodings import build as build
from lff.encodings.embedding import Embed as Embed
from lff.encodings.encoding import Encoding as Encoding
from lff.encodings.encoding import ExactEncoding as ExactEncoding
from lff.encodings.fourier import FourierFeatures as FourierFeatures
from lff.encodings.fourier import LearnableFourier as LearnableFourier
from lff.encodings.fourier import fourier_features as fourier_features
from lff.encodings.groups import Flattened as Flattened
from lff.encodings.groups import Grouped as Grouped
from lff.encodings.mlp import MLP as MLP
from lff.encodings.modulated import Dense as Dense
from lff.encodings.modulated import Modulated as Modulated
from lff.encodings.modulated import Scaled as Scaled
from lff.encodings.regularizer import KLRegularizer as KLRegularizer
from lff.encodings.sinusoidal import MultiDimSine as MultiDimSine
from lff.encodings.sinusoidal import Sine as Sine
from lff.encodings.zero import Zero as Zero
from lff.positions import boxes as boxes
from lff.positions import from_xy as from_xy
from lff.positions import grid as grid
from lff.positions import grid_from_mask as grid_from_mask
from lff.positions import rescale as rescale

__version__ = "0.1.0"
