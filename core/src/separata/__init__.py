"""Methods from recent papers, each a plugin that carries its proof.

The public names stand in ``__init__.pyi``; each is imported when it is first used, so ``import separata``
costs neither torch nor numpy.
"""

import lazy_loader as _lazy

__version__ = "0.1.0"
__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
