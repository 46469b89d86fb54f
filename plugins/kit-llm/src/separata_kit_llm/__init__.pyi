from . import errors as errors
from . import tiny as tiny
from .loading import load as load
from .patching import Hook as Hook
from .patching import Replace as Replace
from .patching import Wrap as Wrap
from .patching import patched as patched
from .retrieval import Needle as Needle
from .retrieval import Task as Task
from .retrieval import needle as needle
from .retrieval import read_tasks as read_tasks
from .retrieval import string_match as string_match
from .scoring import Perplexity as Perplexity
from .scoring import continuation_logits as continuation_logits
from .scoring import kl_divergence as kl_divergence
from .scoring import perplexity as perplexity
from .scoring import token_nll as token_nll
from .text import TEXTS as TEXTS
from .text import read_text as read_text

__all__ = [
    "TEXTS",
    "Hook",
    "Needle",
    "Perplexity",
    "Replace",
    "Task",
    "Wrap",
    "continuation_logits",
    "errors",
    "kl_divergence",
    "load",
    "needle",
    "patched",
    "perplexity",
    "read_tasks",
    "read_text",
    "string_match",
    "tiny",
    "token_nll",
]
