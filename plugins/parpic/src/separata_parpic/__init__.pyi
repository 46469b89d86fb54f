from . import errors as errors
from . import generators as generators
from .clustering import ParPIC as ParPIC
from .diffusion import diffuse as diffuse
from .diffusion import diffusion_time as diffusion_time
from .diffusion import entropy_curve as entropy_curve
from .embedding import embed as embed
from .graphs import Digraph as Digraph
from .graphs import read_graph as read_graph
from .measures import vertex_measure as vertex_measure
from .operators import reversible_operator as reversible_operator
from .quality import block_flow as block_flow
from .quality import directed_modularity as directed_modularity
from .selection import sweep as sweep

__all__ = [
    "Digraph",
    "ParPIC",
    "block_flow",
    "diffuse",
    "diffusion_time",
    "directed_modularity",
    "embed",
    "entropy_curve",
    "errors",
    "generators",
    "read_graph",
    "reversible_operator",
    "sweep",
    "vertex_measure",
]
