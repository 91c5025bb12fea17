"""Programs as text, for people: one line an instruction."""

from __future__ import annotations

from weft.jit.codegen.instructions import BY_NAME
from weft.jit.codegen.program import CONSTANT_BIT, LAST_USE_BIT, Code, FunctionData, ProgramData


def listing(program: ProgramData) -> str:
    """Every function: its registers, then its instructions.

    `o0` is an object register, `s3` a scalar one, `k1` a constant; `!` marks the last use of an
    object.
    """
    return "\n\n".join(function_listing(function) for function in program.functions)


def function_listing(function: FunctionData) -> str:
    """One function."""
    params = ", ".join(
        f"{_register(function, param.register)} {param.name}: {param.type}"
        for param in function.params
    )
    lines = [f"{function.name}({params}) -> {function.result}"]
    if function.preload:
        pairs = (
            f"{_register(function, function.preload_at + i)} = k{constant}"
            for i, constant in enumerate(function.preload)
        )
        lines.append(f"        {', '.join(pairs)}")
    lines += [f"  {i:4}  {_line(function, code)}" for i, code in enumerate(function.code)]
    return "\n".join(lines)


def _register(function: FunctionData, register: int) -> str:
    return f"o{register}" if register < function.objects else f"s{register}"


def _word(function: FunctionData, word: int) -> str:
    if word & CONSTANT_BIT:
        return f"k{word & ~CONSTANT_BIT}"
    mark = "!" if word & LAST_USE_BIT else ""
    return _register(function, word & ~LAST_USE_BIT) + mark


def _line(function: FunctionData, code: Code) -> str:
    parts: list[str] = []
    row = BY_NAME.get(code.name)
    if code.site is not None:
        assert row is not None
        results = " ".join(_register(function, r) for r in code.site.results)
        args = " ".join(_word(function, word) for word in code.site.args)
        extra = f" #{code.site.extra}" if row.extra != "None" else ""
        return f"{results + ' = ' if results else ''}{code.name}{extra} {args}".rstrip()
    if row is not None:
        parts += [_register(function, code.a)] if row.a != "None" else []
        parts += [_register(function, code.b)] if row.b != "None" else []
        parts += [_register(function, code.c)] if row.c != "None" else []
        if row.x == "Constant":
            parts.append(f"k{code.x}")
        elif row.x not in ("None", "Jump"):
            parts.append(f"#{code.x}")
    else:
        # An instruction on scalars.
        jumps, literal = code.name.startswith("jump_"), code.name.endswith("_imm")
        parts += [] if jumps else [_register(function, code.a)]
        parts.append(_register(function, code.b))
        if literal:
            parts.append(f"#{code.x}")
        elif jumps or code.c:
            parts.append(_register(function, code.c))
    if code.target is not None:
        parts.append(f"-> {code.target}")
    return f"{code.name} {' '.join(parts)}".rstrip()
