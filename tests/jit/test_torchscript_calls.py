"""What programs written for torch.jit expect where PyTorch's compiler has an answer of its own."""

import weft
from weft import Tensor, jit


def test_flag_or_tensor_is_a_bool_where_one_is_declared():
    def decide(flag: bool, x: Tensor) -> bool:
        return flag or (x > 1)

    def count(flags: list[bool], x: Tensor) -> int:
        done: bool = flags[0] and x > 1
        flags.append(flags[0] or x > 1)
        return int(done) + len(flags)

    program = jit.script(decide)
    answers = [program(flag, weft.tensor(v)) for flag in (False, True) for v in (1.0, 2.0)]
    assert answers == [False, True, True, True]
    assert jit.script(count)([True], weft.tensor(2.0)) == 3
