"""Lightning Fabric from its own package, or from lightning, which has the same code and is slower to load."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lightning_fabric import Fabric
    from lightning_fabric.plugins.environments.lightning import LightningEnvironment
else:
    try:
        from lightning_fabric import Fabric
        from lightning_fabric.plugins.environments.lightning import LightningEnvironment
    except ModuleNotFoundError:
        from lightning.fabric import Fabric
        from lightning.fabric.plugins.environments.lightning import LightningEnvironment

__all__ = ["Fabric", "LightningEnvironment"]
