"""Classifiers that know what they do not know, by a mixture of Dirichlet experts."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
