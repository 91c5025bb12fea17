"""The instructions of a program: one table. `tools/gen` makes the C++ enumeration and the checks of
the loader from it, the encoder looks operands up in it, docs/jit_runtime.md lists it.

Standard library only: the generator imports this file by itself.

An instruction has up to three registers (a, b, c) and one wider operand (x). Registers come in two
classes: objects (any value, counted) and scalars (int, float, bool, dtype, device, None: plain
bits, so writing one never frees anything). Instructions that take any number of values have a
*site*: a list of operands, a list of results, and one more word.

Besides these there is one instruction for each scalar operator (`add_int`), for the same with a
literal on the right (`add_int_imm`), and, where the result is a bool, four that jump on it
(`jump_if_lt_int`, `jump_unless_lt_int`, and with `_imm`). They come from the table of builtins.
"""

from __future__ import annotations

from typing import NamedTuple

# What a register field holds.
NONE, OBJECT, SCALAR = "None", "Object", "Scalar"
# What x holds; for a site, what its extra word means is `extra`.
X_KINDS = ("None", "Literal", "Jump", "Constant", "Site", "Class", "Type", "Name")
EXTRA_KINDS = ("None", "Operator", "Function", "Name", "External", "ListTag", "Type", "Group")


class Instruction(NamedTuple):
    """One row: the operand kinds and what it does."""

    name: str
    doc: str
    a: str = NONE
    b: str = NONE
    x: str = "None"
    extra: str = "None"
    c: str = NONE


def _site(name: str, doc: str, extra: str = "None") -> Instruction:
    return Instruction(name, doc, x="Site", extra=extra)


INSTRUCTIONS = (
    # ---- registers ----
    Instruction("move_scalar", "a = b", SCALAR, SCALAR),
    Instruction("move_object", "a = b; b is None afterwards", OBJECT, OBJECT),
    Instruction("copy_object", "a = b, shared", OBJECT, OBJECT),
    Instruction("box", "a = b", OBJECT, SCALAR),
    Instruction("unbox", "a = b, which must hold a scalar", SCALAR, OBJECT),
    Instruction("unbox_cast", "a = b; anything if b holds no scalar", SCALAR, OBJECT),
    Instruction("load_constant", "a = constant x", OBJECT, x="Constant"),
    Instruction("load_scalar", "a = constant x", SCALAR, x="Constant"),
    Instruction("release", "a = None: frees what it held", OBJECT),
    # ---- control ----
    Instruction("jump", "continue at x", x="Jump"),
    Instruction("jump_if", "continue at x if b", b=SCALAR, x="Jump"),
    Instruction("jump_unless", "continue at x if not b", b=SCALAR, x="Jump"),
    Instruction("jump_if_none", "continue at x if b is None", b=OBJECT, x="Jump"),
    Instruction("jump_unless_none", "continue at x if b is not None", b=OBJECT, x="Jump"),
    Instruction("loop_start", "a = 0; continue at x if b <= 0", SCALAR, SCALAR, "Jump"),
    Instruction("loop_next", "a += 1; continue at x if a < b", SCALAR, SCALAR, "Jump"),
    Instruction("return_object", "the result is a", OBJECT),
    Instruction("return_scalar", "the result is a", SCALAR),
    Instruction("return_constant", "the result is constant x", x="Constant"),
    Instruction("raise", "raises the exception named x with the message b", b=OBJECT, x="Name"),
    # ---- calls ----
    _site("call_operator", "calls a table or builtin operator", "Operator"),
    _site("call_reusing", "calls an operator, whose result may lie where an operand was that dies",
          "Operator"),
    _site("call_function", "calls a function of the program", "Function"),
    _site("call_method", "calls the method of the first operand's class", "Name"),
    _site("call_external", "calls a function outside the program (Python)", "External"),
    _site("fork", "calls a function of the program on another thread; gives a Future", "Function"),
    Instruction("wait", "a = result of the Future b", OBJECT, OBJECT),
    _site("run_group", "runs a fusion group and skips one instruction; else goes on", "Group"),
    _site("print", "prints the operands, separated by spaces"),
    # ---- containers and objects ----
    _site("make_list", "a list of the operands", "ListTag"),
    _site("make_dict", "a dict of key, value, key, value...; how its values are listed", "ListTag"),
    _site("make_tuple", "a tuple of the operands, of the type given", "Type"),
    _site("unpack_tuple", "results are the items of the tuple"),
    _site("unpack_list", "results are the items of the list, whose length is checked"),
    Instruction("get_item", "a = item x of the tuple b", OBJECT, OBJECT, "Literal"),
    Instruction("list_length", "a = the length of the list b", SCALAR, OBJECT),
    Instruction("get_list_scalar", "a = item c of the list b", SCALAR, OBJECT, c=SCALAR),
    Instruction("get_list_object", "a = item c of the list b", OBJECT, OBJECT, c=SCALAR),
    Instruction("create_object", "a = an instance of class x, attributes unset", OBJECT, x="Class"),
    Instruction("get_attribute", "a = slot x of the object b", OBJECT, OBJECT, "Literal"),
    Instruction("get_scalar", "a = slot x of the object b", SCALAR, OBJECT, "Literal"),
    Instruction("set_attribute", "slot x of the object a = b", OBJECT, OBJECT, "Literal"),
    Instruction("set_scalar", "slot x of the object a = b", OBJECT, SCALAR, "Literal"),
    Instruction("enum_name", "a = name of the member b", OBJECT, OBJECT),
    Instruction("enum_value", "a = value of the member b", OBJECT, OBJECT),
    # ---- questions ----
    Instruction("is_instance", "a = whether b is of type x", SCALAR, OBJECT, "Type"),
    Instruction("is_none", "a = whether b is None", SCALAR, OBJECT),
    Instruction("is_not_none", "a = whether b is not None", SCALAR, OBJECT),
    # ---- modes ----
    Instruction("enter_grad_mode", "switches recording on (x = 1) or off; remembers what it was",
                x="Literal"),
    Instruction("enter_autocast", "operators run in the dtype b, or (None) as they are; remembers "
                "how they ran", b=OBJECT),
    Instruction("exit_mode", "back to what the last enter_... found"),
    _site("enter_context", "until exit_context an exception calls the function with the operand",
          "Function"),
    Instruction("exit_context", "what the last enter_context said ends"),
)  # fmt: skip
BY_NAME = {row.name: row for row in INSTRUCTIONS}


def header() -> str:
    """The table as C++ reads it: X(name, a, b, c, x, extra)."""
    lines = ["#pragma once", "", "#define WEFT_CONTROL_INSTRUCTIONS(X) \\"]
    rows = [f"  X({r.name}, {r.a}, {r.b}, {r.c}, {r.x}, {r.extra})" for r in INSTRUCTIONS]
    return "\n".join([*lines, " \\\n".join(rows), ""])
