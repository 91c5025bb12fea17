"""torch._inductor: its settings; programs are compiled by weft.jit."""
