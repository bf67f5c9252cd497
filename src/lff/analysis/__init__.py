"""What encodings make of positions, before and after training: numbers here, their pictures in `lff.analysis.draw`.

The numbers need nothing but torch, `hull` apart (scipy); the pictures need matplotlib: pip install 'lff[experiments]'.
"""

from lff.analysis.falloff import Falloff as Falloff
from lff.analysis.falloff import falloff as falloff
from lff.analysis.falloff import map_falloff as map_falloff
from lff.analysis.features import features as features
from lff.analysis.features import landmarks as landmarks
from lff.analysis.features import table as table
from lff.analysis.hull import Hull as Hull
from lff.analysis.hull import hull as hull
from lff.analysis.similarity import similarity as similarity
from lff.analysis.spectrum import Spectrum as Spectrum
from lff.analysis.spectrum import spectrum as spectrum
