"""Pictures for the tasks: a set inside the package, folders and batches decoded once, folders too large for that."""

from lff.experiments.data.augment import augment, keys, uniforms
from lff.experiments.data.downsampled import downsampled
from lff.experiments.data.embedded import embedded
from lff.experiments.data.folder import folder
from lff.experiments.data.images import Images
from lff.experiments.data.layout import Listing, listing
from lff.experiments.data.picture import centre_crop, train_crop
from lff.experiments.data.stream import StreamedImages, batches

__all__ = [
    "Images",
    "Listing",
    "StreamedImages",
    "augment",
    "batches",
    "centre_crop",
    "downsampled",
    "embedded",
    "folder",
    "keys",
    "listing",
    "train_crop",
    "uniforms",
]
