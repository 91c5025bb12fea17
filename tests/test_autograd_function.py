"""Custom functions and gradient checks."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

import weft
from weft.autograd import Function, gradcheck, gradgradcheck
from weft.autograd.function import once_differentiable


def leaf(*values: float) -> weft.Tensor:
    return weft.tensor(list(values), dtype=weft.float64, requires_grad=True)


class Square(Function):
    @staticmethod
    def forward(ctx: Any, x: weft.Tensor) -> weft.Tensor:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, grad: weft.Tensor) -> weft.Tensor:
        (x,) = ctx.saved_tensors
        return 2 * x * grad


class Exp(Function):
    """Saves its result."""

    @staticmethod
    def forward(ctx: Any, x: weft.Tensor) -> weft.Tensor:
        result = x.exp()
        ctx.save_for_backward(result)
        return result

    @staticmethod
    def backward(ctx: Any, grad: weft.Tensor) -> weft.Tensor:
        (result,) = ctx.saved_tensors
        return result * grad


class SplitScale(Function):
    """Two results, a number among the arguments."""

    @staticmethod
    def forward(ctx: Any, x: weft.Tensor, factor: float, y: weft.Tensor) -> tuple[Any, ...]:
        ctx.factor = factor
        ctx.seen = None
        return x * factor, y + 1

    @staticmethod
    def backward(ctx: Any, first: weft.Tensor, second: weft.Tensor) -> tuple[Any, ...]:
        return first * ctx.factor, None, second


class TestFunction:
    def test_derivatives(self) -> None:
        x = leaf(3, -2)
        y = Square.apply(x)
        assert y.grad_fn.name() == "SquareBackward"
        y.sum().backward()
        assert x.grad.tolist() == [6, -4]
        assert gradcheck(Square.apply, x) and gradgradcheck(Square.apply, x)
        assert gradcheck(Exp.apply, x) and gradgradcheck(Exp.apply, x)

    def test_several_results(self) -> None:
        x, y = leaf(3), leaf(4)
        first, second = SplitScale.apply(x, 2.5, y)
        second.sum().backward(retain_graph=True)
        assert x.grad.tolist() == [0] and y.grad.tolist() == [1]
        (first.sum() + second.sum()).backward()
        assert x.grad.tolist() == [2.5]

    def test_no_graph_without_need(self) -> None:
        assert not Square.apply(weft.ones(1)).requires_grad
        with weft.no_grad():
            assert not Square.apply(leaf(1)).requires_grad

    def test_needs_input_grad(self) -> None:
        seen: list[tuple[bool, ...]] = []

        class Look(Function):
            @staticmethod
            def forward(ctx: Any, a: weft.Tensor, b: weft.Tensor, c: int) -> weft.Tensor:
                return a + b

            @staticmethod
            def backward(ctx: Any, grad: weft.Tensor) -> tuple[Any, ...]:
                seen.append(ctx.needs_input_grad)
                return grad, None, None

        Look.apply(leaf(1), weft.ones(1), 3).sum().backward()
        assert seen == [(True, False, False)]

    def test_setup_context(self) -> None:
        class Cube(Function):
            @staticmethod
            def forward(x: weft.Tensor) -> weft.Tensor:
                return x * x * x

            @staticmethod
            def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
                ctx.save_for_backward(*inputs)

            @staticmethod
            def backward(ctx: Any, grad: weft.Tensor) -> weft.Tensor:
                (x,) = ctx.saved_tensors
                return 3 * x * x * grad

        assert gradcheck(Cube.apply, leaf(1.5, -1))

    def test_setup_context_gets_what_forward_has_by_default(self) -> None:
        class Power(Function):
            @staticmethod
            def forward(x: weft.Tensor, n: int = 3, scale: float = 2.0) -> weft.Tensor:
                return scale * x**n

            @staticmethod
            def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
                x, ctx.n, ctx.scale = inputs
                ctx.save_for_backward(x)

            @staticmethod
            def backward(ctx: Any, grad: weft.Tensor) -> Any:
                (x,) = ctx.saved_tensors
                assert ctx.needs_input_grad == (True, False, False)
                return ctx.scale * ctx.n * x ** (ctx.n - 1) * grad, None, None

        class OfClass(Power):
            @classmethod
            def forward(cls, x: weft.Tensor, n: int = 3, scale: float = 2.0) -> weft.Tensor:
                return scale * x**n

        assert Power.apply(leaf(2), 2).item() == OfClass.apply(leaf(2), 2).item() == 8
        for given in ((), (2,), (2, 1.0)):
            for kind in (Power, OfClass):
                assert gradcheck(lambda x, f=kind.apply, args=given: f(x, *args), leaf(1.5, -1))

    def test_mark_dirty(self) -> None:
        class Double(Function):
            @staticmethod
            def forward(ctx: Any, x: weft.Tensor) -> weft.Tensor:
                ctx.mark_dirty(x)
                return x.mul_(2)

            @staticmethod
            def backward(ctx: Any, grad: weft.Tensor) -> weft.Tensor:
                return grad * 2

        x = leaf(3)
        with pytest.raises(RuntimeError):
            Double.apply(x)
        y = x * 1
        z = Double.apply(y)
        assert z is y and y.grad_fn.name() == "DoubleBackward"
        y.sum().backward()
        assert x.grad.tolist() == [2]

    def test_mark_non_differentiable(self) -> None:
        class Split(Function):
            @staticmethod
            def forward(ctx: Any, x: weft.Tensor) -> tuple[Any, ...]:
                constant = x.floor()
                ctx.mark_non_differentiable(constant)
                return x * 2, constant

            @staticmethod
            def backward(ctx: Any, grad: weft.Tensor, zero: weft.Tensor) -> weft.Tensor:
                assert zero.tolist() == [0]
                return grad * 2

        x = leaf(1.5)
        y, constant = Split.apply(x)
        assert not constant.requires_grad and y.requires_grad
        y.sum().backward()
        assert x.grad.tolist() == [2]

    def test_returning_the_input(self) -> None:
        class Pass(Function):
            @staticmethod
            def forward(ctx: Any, x: weft.Tensor) -> weft.Tensor:
                return x

            @staticmethod
            def backward(ctx: Any, grad: weft.Tensor) -> weft.Tensor:
                return grad * 7

        x = leaf(1)
        y = Pass.apply(x)
        assert y is not x and x.is_leaf
        y.sum().backward()
        assert x.grad.tolist() == [7]

    def test_wrong_results(self) -> None:
        class Wrong(Function):
            answer: Any = None

            @staticmethod
            def forward(ctx: Any, x: weft.Tensor, n: int) -> weft.Tensor:
                return x * n

            @staticmethod
            def backward(ctx: Any, grad: weft.Tensor) -> Any:
                return Wrong.answer

        def message(answer: Any) -> str:
            Wrong.answer = answer
            with pytest.raises((RuntimeError, TypeError)) as error:
                Wrong.apply(leaf(1, 2), 3).sum().backward()
            return str(error.value)

        assert message(weft.ones(2)) == "WrongBackward: expected 2 gradients, got 1"
        assert message((weft.ones(3), None)) == (
            "WrongBackward: expected gradient of shape (2,), got (3,)"
        )
        assert message((weft.ones(2), weft.ones(1))) == (
            "WrongBackward: expected None as gradient of argument 1, which is no tensor, got Tensor"
        )
        assert message(("x", None)) == (
            "WrongBackward: expected gradients of type Tensor or None, got str"
        )

    def test_saved_tensor_changed(self) -> None:
        x = leaf(1)
        y = x * 1
        z = Square.apply(y)
        y.add_(1)
        with pytest.raises(RuntimeError) as error:
            z.sum().backward()
        assert str(error.value) == (
            "SquareBackward: expected saved tensor at version 0, got version 1; it was changed in "
            "place after being saved"
        )

    def test_once_differentiable(self) -> None:
        class Once(Function):
            @staticmethod
            def forward(ctx: Any, x: weft.Tensor) -> weft.Tensor:
                ctx.save_for_backward(x)
                return x * x

            @staticmethod
            @once_differentiable
            def backward(ctx: Any, grad: weft.Tensor) -> weft.Tensor:
                (x,) = ctx.saved_tensors
                return 2 * x * grad

        x = leaf(3)
        (first,) = weft.autograd.grad(Once.apply(x).sum(), x, create_graph=True)
        assert first.tolist() == [6]
        with pytest.raises(NotImplementedError):
            first.sum().backward()

    def test_backward_inside_backward(self) -> None:
        class Inner(Function):
            @staticmethod
            def forward(ctx: Any, x: weft.Tensor) -> weft.Tensor:
                ctx.save_for_backward(x)
                return x.exp()

            @staticmethod
            def backward(ctx: Any, grad: weft.Tensor) -> weft.Tensor:
                (x,) = ctx.saved_tensors
                with weft.enable_grad():
                    copy = x.detach().requires_grad_()
                    copy.exp().sum().backward()
                return copy.grad * grad

        assert gradcheck(Inner.apply, leaf(0.5, -0.25))

    def test_nothing_stays_alive(self) -> None:
        x = leaf(1)
        y = Exp.apply(x)
        node = weakref.ref(y)
        y.sum().backward()
        del y
        gc.collect()
        assert node() is None

    def test_no_instances(self) -> None:
        with pytest.raises(RuntimeError):
            Square()


class TestGradcheck:
    def test_catches_a_wrong_gradient(self) -> None:
        class Wrong(Function):
            @staticmethod
            def forward(ctx: Any, x: weft.Tensor) -> weft.Tensor:
                ctx.save_for_backward(x)
                return x * x

            @staticmethod
            def backward(ctx: Any, grad: weft.Tensor) -> weft.Tensor:
                (x,) = ctx.saved_tensors
                return 2.1 * x * grad

        x = leaf(1, 2, 3)
        with pytest.raises(weft.autograd.GradcheckError) as error:
            gradcheck(Wrong.apply, x)
        assert "by finite differences" in str(error.value)
        assert gradcheck(Wrong.apply, x, raise_exception=False) is False

    def test_catches_a_wrong_second_gradient(self) -> None:
        class Cut(Function):
            @staticmethod
            def forward(ctx: Any, x: weft.Tensor) -> weft.Tensor:
                ctx.save_for_backward(x)
                return x * x

            @staticmethod
            def backward(ctx: Any, grad: weft.Tensor) -> weft.Tensor:
                (x,) = ctx.saved_tensors
                return 2 * x.detach() * grad

        x = leaf(1, 2)
        assert gradcheck(Cut.apply, x)
        with pytest.raises(weft.autograd.GradcheckError):
            gradgradcheck(Cut.apply, x)

    def test_inputs(self) -> None:
        with pytest.raises(ValueError):
            gradcheck(lambda x: x * 2, weft.ones(1, dtype=weft.float64))
        x = weft.ones(1, requires_grad=True)
        with pytest.warns(UserWarning, match=r"expected inputs of dtype .* got torch.float32 for"):
            assert gradcheck(lambda x: x * 2, x, eps=1e-2, atol=1e-2)

    @pytest.mark.parametrize("complex_", [False, True])
    def test_every_way_to_a_derivative(self, complex_: bool) -> None:
        x, y = leaf(0.5, -0.25), leaf(1.5, 2.0)
        if complex_:
            x = weft.complex(x.detach(), y.detach()).requires_grad_()
        ways = {"check_forward_ad": True, "check_batched_grad": True, "fast_mode": True}
        assert gradcheck(lambda x, y: (x.sin() * y, x.abs()), (x, y), **ways)
        assert gradcheck(weft.exp, x, check_backward_ad=False, check_forward_ad=True, masked=True)
        both = {"check_fwd_over_rev": True, "gen_non_contig_grad_outputs": True}
        assert gradgradcheck(lambda x, y: x.exp() * y, (x, y), check_batched_grad=True, **both)
        with pytest.raises(AssertionError, match="expected check_forward_ad or check_backward_ad"):
            gradcheck(weft.exp, x, check_backward_ad=False)
        with pytest.raises(AssertionError, match="expects check_forward_ad=True"):
            gradcheck(weft.exp, x, check_batched_forward_grad=True)

    @pytest.mark.parametrize("wrong", ["several", "second"])
    def test_what_only_other_ways_see(self, wrong: str) -> None:
        class Counted(Function):
            calls = 0

            @staticmethod
            def forward(ctx: Any, x: weft.Tensor) -> weft.Tensor:
                return x * 3

            @staticmethod
            def backward(ctx: Any, grad: weft.Tensor) -> weft.Tensor:
                Counted.calls += 1
                if wrong == "second":  # right, but not as a function of the gradient
                    return grad * 1.5 + grad.detach() * 1.5
                return grad * (3 if Counted.calls <= 2 else 4)

        assert gradcheck(Counted.apply, leaf(1, 2))
        Counted.calls = 0
        option = {"several": "check_batched_grad", "second": "check_forward_ad"}[wrong]
        with pytest.raises(weft.autograd.GradcheckError, match=r"by (a backward of two|the deriv)"):
            gradcheck(Counted.apply, leaf(1, 2), **{option: True})

    def test_linear_and_constant_functions(self) -> None:
        x = leaf(1, 2)
        assert gradcheck(lambda x: x * 3, x) and gradgradcheck(lambda x: x * 3, x)
        assert gradcheck(lambda x: (x * 2, x.detach() * 0), x)


def test_saved_tensors_by_their_old_name() -> None:
    class OldSquare(Square):
        @staticmethod
        def backward(ctx: Any, grad: weft.Tensor) -> weft.Tensor:
            with pytest.warns(DeprecationWarning, match="saved_variables is deprecated"):
                (x,) = ctx.saved_variables
            return 2 * x * grad

    x = leaf(3.0)
    OldSquare.apply(x).backward()
    assert x.grad.item() == 6.0
