"""Training on weights that exist only quantised: ECO's optimizers, and what converts, saves and measures models."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
