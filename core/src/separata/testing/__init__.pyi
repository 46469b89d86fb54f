from .site import Site as Site

__all__: list[str]
