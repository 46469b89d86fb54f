from .analysis import CrossLayerCKA as CrossLayerCKA
from .attention import attention_of as attention_of
from .cache import XKVCache as XKVCache
from .config import XKVConfig as XKVConfig
from .crosslayer_svd import Factors as Factors
from .crosslayer_svd import crosslayer_svd as crosslayer_svd
from .select_chunks import select_chunks as select_chunks

__all__: list[str]
