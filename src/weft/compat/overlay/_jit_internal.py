"""Names that programs written for PyTorch import from torch._jit_internal."""

from weft.jit import Final as Final
from weft.jit import Future as Future
from weft.jit import export as export
from weft.jit import ignore as ignore
from weft.jit import is_scripting as is_scripting
from weft.jit import unused as unused
from weft.jit.annotations import BroadcastingList1 as BroadcastingList1
from weft.jit.annotations import BroadcastingList2 as BroadcastingList2
from weft.jit.annotations import BroadcastingList3 as BroadcastingList3
from weft.jit.annotations import BroadcastingList4 as BroadcastingList4
from weft.jit.annotations import BroadcastingList5 as BroadcastingList5
from weft.jit.annotations import BroadcastingList6 as BroadcastingList6
from weft.jit.annotations import Dict as Dict
from weft.jit.annotations import List as List
from weft.jit.annotations import Optional as Optional
from weft.jit.annotations import Tuple as Tuple
from weft.jit.markers import _copy_to_script_wrapper as _copy_to_script_wrapper
from weft.jit.markers import _overload as _overload
from weft.jit.markers import _overload_method as _overload_method
