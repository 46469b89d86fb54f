"""Choose and run the batching policy of an LLM server: exclusive, mixed, or whichever wins now."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
