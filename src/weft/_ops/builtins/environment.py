"""What a program asks of its surroundings: modes, seeds, warnings, enumerations."""

from __future__ import annotations

from functools import partial

from weft._ops.builtins.rows import builtin as _builtin

builtin = partial(_builtin, family="environment")


builtin("manual_seed(int seed) -> ()", "seed_generator", None, "Seeds the default generator.",
        ("side_effect", "seeds"))  # fmt: skip
builtin("Generator(Device? device=None) -> Generator", "generator_make", None,
        "A new generator of random numbers.", ("side_effect",))  # fmt: skip
builtin("manual_seed.generator(Generator self, int seed) -> Generator", "generator_manual_seed",
        None, "Seeds a generator; gives it back.", ("side_effect",))  # fmt: skip
builtin("seed(Generator self) -> int", "generator_seed", None,
        "Seeds a generator from the system's entropy; gives the seed.",
        ("side_effect",))  # fmt: skip
builtin("initial_seed(Generator self) -> int", "generator_initial_seed", None,
        "What a generator was seeded with.", ("reads_state",))  # fmt: skip
builtin("is_grad_enabled() -> bool", "autograd::grad_enabled()", None,
        "Whether gradients are recorded.", ("reads_state",))  # fmt: skip
builtin("set_grad_enabled(bool val) -> ()", "set_recording", None,
        "Starts or stops recording gradients.", ("side_effect",))  # fmt: skip
builtin("prim::autocast_now() -> ScalarType?", "autocast_now", None,
        "The dtype that autocast lowers to; None where it is off.", ("reads_state",))  # fmt: skip
builtin("get_default_dtype() -> ScalarType", "Value(default_dtype())", None,
        "The dtype of new floating tensors.", ("reads_state",))  # fmt: skip
builtin("is_scripting() -> bool", "static_cast<bool>(1)", lambda: True, "True in a program.")
builtin("_get_tracing_state() -> bool", "static_cast<bool>(0)", lambda: False, "Always false.")
builtin("warn(str message, int stacklevel=2) -> ()", "warn_user", None,
        "Prints a warning to the error stream.", ("side_effect",))  # fmt: skip
builtin("prim::write(str text) -> ()", "write_text", None,
        "Prints a text as it is, where print() prints.", ("side_effect",))  # fmt: skip
builtin("prim::EnumName(AnyEnumType enum) -> str", "enum_name", lambda member: member.name,
        "The name of a member.")  # fmt: skip
for _type in ("int", "float", "str"):
    builtin(f"prim::EnumValue.{_type}(AnyEnumType enum) -> {_type}",
            {"int": "enum_value(a).to_int()", "float": "enum_value(a).to_double()",
             "str": "enum_value(a).text()"}[_type],
            lambda member: member.value, "The value of a member.")  # fmt: skip
builtin("hash.generic(t value) -> int", "static_cast<int64_t>(hash_value(a))", None,
        "A number that equal values share.")  # fmt: skip
builtin("prim::id(AnyClassType? x) -> int", "object_id", None,
        "A number that no other living object has.", ("reads_state",))  # fmt: skip
builtin("_unwrap_optional(t(a)? optional) -> t(a)", "unwrap_optional", None,
        "The value; RuntimeError where it is None.")  # fmt: skip
builtin("wait(Future(t) self) -> t", "future_wait", None,
        "The result of a forked call, when it is there.", ("side_effect",))  # fmt: skip
builtin("time() -> float", "time_now", None, "time.time().", ("reads_state", "side_effect"))
builtin("perf_counter() -> float", "time_counter", None, "time.perf_counter().",
        ("reads_state", "side_effect"))  # fmt: skip
