"""Opportunistic expert activation: a decode step of a mixture of experts loads fewer experts, without retraining."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
