"""torch._subclasses: what libraries ask of tensors without elements."""
