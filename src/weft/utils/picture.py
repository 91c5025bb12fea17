"""Pictures of a live tensor: its layout, the storage under it, and the allocator's block.

    import weft
    x = weft.arange(12.0).reshape(3, 4)
    print(weft.utils.show(x.t()[1:]))

The result prints as text; notebooks show it as HTML (`_repr_html_`).
"""

from __future__ import annotations

from html import escape
from typing import Any

from weft._C import Tensor
from weft.storage import Info

_CELLS = 64  # elements of the storage that a picture draws; the rest is counted


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("" if number == 1 else "s")


def _bytes(count: int) -> str:
    return _count(count, "byte")


class Picture:
    """What `show` found out about a tensor. `str()` is the text, `html()` the same for a page."""

    def __init__(self, tensor: Tensor) -> None:
        storage = tensor.untyped_storage()
        self.info: Info = storage.info()
        self.shape, self.stride = tuple(tensor.shape), tensor.stride()
        self.offset, self.itemsize = tensor.storage_offset(), tensor.element_size()
        self.dtype, self.device = str(tensor.dtype), str(tensor.device)
        self.contiguous = tensor.is_contiguous()
        self.view = tensor._is_view()
        self.reached = self._reached()
        self.cells = self._cells(tensor)

    # ---- what it found ----

    def _reached(self) -> dict[int, tuple[int, ...]]:
        """Element of the storage -> the first index of the tensor that reaches it."""
        reached: dict[int, tuple[int, ...]] = {}
        if 0 in self.shape:
            return reached
        index = [0] * len(self.shape)
        for _ in range(16 * _CELLS):
            place = self.offset + sum(i * step for i, step in zip(index, self.stride))
            reached.setdefault(place, tuple(index))
            for dim in reversed(range(len(index))):  # an odometer
                index[dim] += 1
                if index[dim] < self.shape[dim]:
                    break
                index[dim] = 0
            else:
                break
        return reached

    def _cells(self, tensor: Tensor) -> list[str]:
        """The first elements of the storage, as text."""
        count = min(self.info.nbytes // self.itemsize, _CELLS)
        if count == 0:
            return []
        flat = tensor.detach().as_strided((count,), (1,), 0)
        return [f"{v:.4g}" if isinstance(v, float) else str(v) for v in flat.tolist()]

    @property
    def elements(self) -> int:
        """Elements that fit in the storage."""
        return self.info.nbytes // self.itemsize

    def _kind(self) -> str:
        if self.contiguous:
            return "contiguous"
        if any(step < 0 for step in self.stride):
            return "strided, with negative strides"
        if 0 in self.stride:
            return "strided, broadcast"
        return "strided"

    def _address_rule(self) -> str:
        terms = [str(self.offset)] if self.offset or not self.shape else []
        terms += [f"{step}*i{dim}" for dim, step in enumerate(self.stride)]
        rule = " + ".join(terms).replace("+ -", "- ")
        return f"element[{', '.join(f'i{d}' for d in range(len(self.shape)))}] at {rule}"

    def _owner(self) -> str:
        if self.info.allocator is not None:
            return f"allocator {self.info.allocator!r}"
        return "somebody else (array, buffer, capsule or mapped file)"

    def _flags(self) -> str:
        names = ("read_only", "shared", "pinned", "foreign")
        found = [name.replace("_", "-") for name in names if getattr(self.info, name)]
        return ", ".join(found) or "none"

    def facts(self) -> list[tuple[str, list[tuple[str, str]]]]:
        """The three parts, each as names with values."""
        info = self.info  # its references include the one of asking
        first = info.address + self.offset * self.itemsize if self.reached else 0
        tensor = [
            ("shape", str(self.shape)),
            ("dtype", f"{self.dtype}, {_bytes(self.itemsize)} each"),
            ("device", self.device),
            ("view", "yes" if self.view else "no"),
        ]
        layout = [
            ("stride", f"{self.stride} elements"),
            ("in bytes", str(tuple(step * self.itemsize for step in self.stride))),
            ("offset", f"{_count(self.offset, 'element')}, {_bytes(self.offset * self.itemsize)}"),
            ("kind", self._kind()),
            ("rule", self._address_rule()),
            ("data_ptr", hex(first)),
        ]
        storage = [
            ("address", hex(info.address)),
            ("size", f"{_bytes(info.nbytes)}, {_count(self.elements, 'element')} of this dtype"),
            ("flags", self._flags()),
            ("references", _count(info.references - 1, "time") + ", by tensors and graphs"),
            ("held outside", _count(info.holds, "time")),
            ("version", _count(info.version, "write") + " so far"),
        ]
        block = [("from", self._owner())]
        if info.allocator is not None:
            block.append(("block", f"{_bytes(info.capacity)} asked for"))
            if info.address:
                block.append(("aligned to", _bytes(min(info.address & -info.address, 4096))))
        return [("tensor", tensor), ("layout", layout), ("storage", storage), ("memory", block)]

    # ---- as text ----

    def _strip(self) -> list[str]:
        """The storage's elements, with the tensor's indices under those it reaches."""
        marks = [
            "[" + ",".join(map(str, self.reached[n])) + "]" if n in self.reached else "·"
            for n in range(len(self.cells))
        ]
        width = max(map(len, [*self.cells, *marks]), default=1) + 1
        per_line = max(1, 88 // width)
        lines = []
        for start in range(0, len(self.cells), per_line):
            part = slice(start, start + per_line)
            lines.append("".join(cell.rjust(width) for cell in self.cells[part]))
            lines.append("".join(mark.rjust(width) for mark in marks[part]))
        if self.elements > len(self.cells):
            lines.append(f" ... and {self.elements - len(self.cells):,} more elements")
        return lines

    def __str__(self) -> str:
        lines = []
        for title, rows in self.facts():
            for name, value in rows:
                lines.append(f"{title:<8} {name:<13} {value}")
                title = ""
        return "\n".join([*lines, *self._strip()])

    __repr__ = __str__

    # ---- as HTML ----

    def html(self) -> str:
        """A fragment with tables and the storage as a strip of cells; no scripts."""
        tables = []
        for title, rows in self.facts():
            body = "".join(
                f"<tr><th align='left'>{escape(name)}</th>"
                f"<td><code>{escape(value)}</code></td></tr>"
                for name, value in rows
            )
            tables.append(f"<table><caption><b>{title}</b></caption>{body}</table>")
        cells = []
        for n, text in enumerate(self.cells):
            index = self.reached.get(n)
            colour = "#eee" if index is None else "#9cf"
            label = "" if index is None else "[" + ",".join(map(str, index)) + "]"
            cells.append(
                f"<span style='display:inline-block;border:1px solid #888;padding:2px 4px;"
                f"background:{colour};color:#000;text-align:center' title='element {n}'>"
                f"<code>{escape(text)}</code><br><small>{label or '&nbsp;'}</small></span>"
            )
        more = self.elements - len(self.cells)
        tail = f" ... and {more:,} more elements" if more > 0 else ""
        return f"<div class='weft-picture'>{''.join(tables)}<div>{''.join(cells)}{tail}</div></div>"

    _repr_html_ = html


def show(tensor: Tensor) -> Picture:
    """A picture of a tensor, its layout, its storage and the block under it, as they are now.

    Elements of the storage that the tensor reaches carry the index that reaches them; the others
    belong to other views, or to nobody. TypeError unless given a tensor.
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"show: expected a Tensor, got {type(tensor).__name__}")
    return Picture(tensor)


def sharing(*tensors: Any) -> str:
    """Which of the tensors lie over one storage: one line per storage, tensors by position."""
    groups: dict[int, list[int]] = {}
    for position, tensor in enumerate(tensors):
        groups.setdefault(tensor._storage_key(), []).append(position)
    return "\n".join(
        f"storage of {_bytes(tensors[members[0]].untyped_storage().nbytes())}: "
        + ", ".join(f"#{position}" for position in members)
        for members in groups.values()
    )
