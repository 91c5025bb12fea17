"""Where PyTorch keeps the base of context managers that decorate functions too."""

from weft.autograd.grad_mode import _DecoratorContextManager as _DecoratorContextManager
