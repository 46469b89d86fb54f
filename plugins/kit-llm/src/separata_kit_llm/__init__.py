"""What plugins for language models share: loading, patching, scoring and real text."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
