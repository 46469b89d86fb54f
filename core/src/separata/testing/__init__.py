"""The conformance kit: what a plugin's own tests need, and the checks that every plugin keeps."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
