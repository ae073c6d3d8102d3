"""BlockMask: which blocks of queries attend to which blocks of keys, and the mask function for single elements.

In: a mask function of (batch, head, query, key), or the indices of blocks. Out: an argument of `flex_attention`. Indices are
int32, in rows with room for all blocks; the counts say how many entries of a row are valid.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from rushlight.core.dtype import bool_, int32
from rushlight.core.tensor import Tensor
from rushlight.func.vmap import vmap
from rushlight.ops.registry import aten as op

MaskFunction = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
DEFAULT_BLOCK_SIZE = 128
_SHADES = {0: "  ", 1: "░░", 2: "██"}
_SLICED = (
    "Cannot use mask_mod from a sliced BlockMask. When you slice a BlockMask using [], the mask_mod attribute is reset. You "
    "must set it from the original BlockMask's mask_mod."
)


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """True: every query attends to every key."""
    return batch.new_ones(size=(), dtype=bool_, device=batch.device)


def _refuse_sliced(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> NoReturn:
    raise RuntimeError(_SLICED)


def over_elements(function: Callable, with_score: bool = False) -> Callable:
    """Lift a function of one element's (score and) indices to one of (a tensor of scores and) a range per index."""
    score = (0,) if with_score else ()
    for dims in ((None, None, None, 0), (None, None, 0, None), (None, 0, None, None), (0, None, None, None)):
        function = vmap(function, in_dims=(*score, *dims), out_dims=0)
    return function


def _indices(*sizes: int, device: Any) -> list[Tensor]:
    return [op("arange")(size, device=device) for size in sizes]


def to_order(blocks: Tensor) -> tuple[Tensor, Tensor]:
    """Return the number of blocks set in each row of a dense mask (..., rows, columns), and the columns, set ones first."""
    counts = blocks.to(int32).sum(dim=-1).to(int32)
    columns = blocks.to(int32).argsort(dim=-1, descending=True, stable=True).to(int32)
    return counts.contiguous(), columns.contiguous()


def to_dense(counts: Tensor, columns: Tensor) -> Tensor:
    """Return the inverse of `to_order`: an int32 mask (..., rows, columns)."""
    positions = op("arange")(columns.shape[-1], device=columns.device)
    is_meant = (positions < counts.unsqueeze(-1)).to(int32)
    return op("zeros_like")(columns).scatter(-1, columns.long(), is_meant)


def _transpose_blocks(counts: Tensor | None, columns: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
    return (None, None) if counts is None else to_order(to_dense(counts, columns).transpose(-2, -1))


class BlockMask:
    """Blocks of a mask of sizes (B, H, Q_LEN, KV_LEN). "Full" blocks are unmasked throughout; in other blocks `mask_mod`
    decides."""

    _TENSOR_ATTRS = [
        "kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices", "q_num_blocks", "q_indices",
        "full_q_num_blocks", "full_q_indices", "dq_write_order", "dq_write_order_full", "dq_kv_order",
    ]  # fmt: skip
    _CONTEXT_ATTRS = ["seq_lengths", "BLOCK_SIZE", "mask_mod", "dq_kv_order_spt"]

    def __init__(
        self, seq_lengths: tuple[int, int], kv_num_blocks: Tensor, kv_indices: Tensor, full_kv_num_blocks: Tensor | None,
        full_kv_indices: Tensor | None, q_num_blocks: Tensor | None, q_indices: Tensor | None,
        full_q_num_blocks: Tensor | None, full_q_indices: Tensor | None,
        BLOCK_SIZE: tuple[int, int] = (DEFAULT_BLOCK_SIZE, DEFAULT_BLOCK_SIZE),  # noqa: N803 - torch's name
        mask_mod: MaskFunction = noop_mask, *, dq_write_order: Tensor | None = None,
        dq_write_order_full: Tensor | None = None, dq_kv_order: Tensor | None = None, dq_kv_order_spt: bool | None = None,
    ) -> None:  # fmt: skip
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        for name, one, other in (
            ("full_kv_num_blocks and full_kv_indices", full_kv_num_blocks, full_kv_indices),
            ("q_num_blocks and q_indices", q_num_blocks, q_indices),
            ("full_q_num_blocks and full_q_indices", full_q_num_blocks, full_q_indices),
        ):
            if (one is None) != (other is None):
                raise AssertionError(f"{name} must be both provided or omitted")
        self.seq_lengths, self.BLOCK_SIZE, self.mask_mod = seq_lengths, BLOCK_SIZE, mask_mod
        self.kv_num_blocks, self.kv_indices = kv_num_blocks, kv_indices
        self.full_kv_num_blocks, self.full_kv_indices = full_kv_num_blocks, full_kv_indices
        self.q_num_blocks, self.q_indices = q_num_blocks, q_indices
        self.full_q_num_blocks, self.full_q_indices = full_q_num_blocks, full_q_indices
        self.dq_write_order, self.dq_write_order_full = dq_write_order, dq_write_order_full
        self.dq_kv_order, self.dq_kv_order_spt = dq_kv_order, dq_kv_order_spt

    @classmethod
    def from_kv_blocks(
        cls, kv_num_blocks: Tensor, kv_indices: Tensor, full_kv_num_blocks: Tensor | None = None,
        full_kv_indices: Tensor | None = None, BLOCK_SIZE: int | tuple[int, int] = DEFAULT_BLOCK_SIZE,  # noqa: N803
        mask_mod: MaskFunction | None = None, seq_lengths: tuple[int, int] | None = None, compute_q_blocks: bool = True,
    ) -> BlockMask:  # fmt: skip
        """Return a mask from the blocks of keys that each block of queries attends to."""
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
        q = _transpose_blocks(kv_num_blocks, kv_indices) if compute_q_blocks else (None, None)
        full_q = _transpose_blocks(full_kv_num_blocks, full_kv_indices) if compute_q_blocks else (None, None)
        if seq_lengths is None:
            seq_lengths = (kv_indices.shape[-2] * size[0], kv_indices.shape[-1] * size[1])
        return cls(
            seq_lengths, kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices, *q, *full_q, size,
            mask_mod or noop_mask,
        )  # fmt: skip

    def as_tuple(self, flatten: bool = True) -> tuple:
        """Lengths, tensors, block sizes and mask function in torch's order."""
        sizes = self.BLOCK_SIZE if flatten else (self.BLOCK_SIZE,)
        lengths = self.seq_lengths if flatten else (self.seq_lengths,)
        tensors = (getattr(self, name) for name in self._TENSOR_ATTRS)
        return (*lengths, *tensors, self.dq_kv_order_spt, *sizes, self.mask_mod)

    @property
    def shape(self) -> tuple[int, ...]:
        """(B, H, Q_LEN, KV_LEN)."""
        return (*self.kv_indices.shape[:-2], *self.seq_lengths)

    def numel(self) -> int:
        """Return the number of elements of the whole mask."""
        count = 1
        for size in self.shape:
            count *= size
        return count

    def sparsity(self) -> float:
        """Return the percentage of the mask that no block covers."""
        blocks = int(self.kv_num_blocks.sum())
        if self.full_kv_num_blocks is not None:
            blocks += int(self.full_kv_num_blocks.sum())
        return 100 * (1 - blocks * self.BLOCK_SIZE[0] * self.BLOCK_SIZE[1] / self.numel())

    def to_dense(self) -> Tensor:
        """Return the blocks as an int32 tensor (B, H, blocks of queries, blocks of keys)."""
        partial = to_dense(self.kv_num_blocks, self.kv_indices)
        return partial if self.full_kv_num_blocks is None else partial | to_dense(self.full_kv_num_blocks, self.full_kv_indices)

    def __getitem__(self, index: Any) -> BlockMask:
        """The mask of some batches, heads or blocks of queries. Its `mask_mod` must be set anew."""
        index = index if isinstance(index, tuple) else (index,)
        rest = self.kv_indices.dim() - 2
        if index[-1] is ...:
            index = index[:-1]
        index = tuple(slice(i + self.kv_indices.shape[at], None) if i == -1 and isinstance(i, int) and at < rest else i
                      for at, i in enumerate(index))  # fmt: skip
        index = tuple(slice(i, i + 1 or None) if isinstance(i, int) else i for i in index)
        take = lambda tensor: None if tensor is None else tensor[index]  # noqa: E731
        return BlockMask.from_kv_blocks(
            take(self.kv_num_blocks), take(self.kv_indices), take(self.full_kv_num_blocks), take(self.full_kv_indices),
            self.BLOCK_SIZE, _refuse_sliced, self.seq_lengths, self.q_indices is not None,
        )  # fmt: skip

    def _adjust(self, new_q_len: int, new_kv_len: int) -> BlockMask:
        """Return the mask for shorter sequences."""
        rows = -(-new_q_len // self.BLOCK_SIZE[0])
        columns = -(-new_kv_len // self.BLOCK_SIZE[1])

        def cut(counts: Tensor | None, indices: Tensor | None) -> tuple:
            return (None, None) if counts is None else to_order(to_dense(counts, indices)[..., :rows, :columns])

        partial, full = cut(self.kv_num_blocks, self.kv_indices), cut(self.full_kv_num_blocks, self.full_kv_indices)
        return BlockMask.from_kv_blocks(*partial, *full, self.BLOCK_SIZE, self.mask_mod, (new_q_len, new_kv_len))

    def to(self, device: Any) -> BlockMask:
        """Return the mask with its tensors on a device."""
        moved = {name: getattr(self, name) for name in (*self._TENSOR_ATTRS, *self._CONTEXT_ATTRS)}
        return BlockMask(**{name: value.to(device) if isinstance(value, Tensor) else value for name, value in moved.items()})

    def _shades(self) -> Tensor:
        partial = to_dense(self.kv_num_blocks, self.kv_indices)
        if self.full_kv_num_blocks is None:
            return partial * 2
        return partial + 2 * to_dense(self.full_kv_num_blocks, self.full_kv_indices)

    def to_string(self, grid_size: int | tuple[int, int] = (20, 20), limit: int = 4) -> str:
        """Return a picture in which each cell is a group of blocks, shaded by whether all, some or none of them are present."""
        dense = self.to_dense()
        grid_size = (grid_size, grid_size) if isinstance(grid_size, int) else grid_size
        lines = []
        leading = [(b, h) for b in range(dense.shape[0]) for h in range(dense.shape[1])] if dense.dim() == 4 else [()]
        for at, position in enumerate(leading):
            if at == limit:
                lines += [
                    "...", "To print out more, set BlockMask.to_string(limit=N)",
                    "You can also index (BlockMask[batch, head]) to choose a specific batch or head",
                ]  # fmt: skip
                break
            lines += [str(position), *_picture(dense[position], grid_size), ""]
        return "\n".join(lines)

    def __str__(self) -> str:
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%, \n{self.to_string().strip()}\n)"

    def __repr__(self) -> str:
        def of(name: str) -> str:
            value = getattr(self, name)
            return f"    {name}={'None' if value is None else repr(value.shape)},\n"

        parts = "".join(map(of, self._TENSOR_ATTRS[:8]))
        name = getattr(self.mask_mod, "__name__", self.mask_mod)
        return (
            f"BlockMask(\n{parts}    BLOCK_SIZE={self.BLOCK_SIZE},\n    shape={self.shape},\n"
            f"    sparsity={self.sparsity():.2f}%,\n    mask_mod={name}\n)"
        )


def _picture(blocks: Tensor, grid_size: tuple[int, int]) -> list[str]:
    rows, columns = blocks.shape
    height = rows if grid_size[0] == -1 else -(-rows // min(grid_size[0], rows))
    width = columns if grid_size[1] == -1 else -(-columns // min(grid_size[1], columns))
    height, width = (1 if grid_size[0] == -1 else height), (1 if grid_size[1] == -1 else width)
    lines = []
    for top in range(0, rows, height):
        line = ""
        for left in range(0, columns, width):
            part = blocks[top : top + height, left : left + width]
            count = int((part != 0).sum())
            line += _SHADES[2 if count == part.numel() else 1 if count else 0]
        lines.append(line)
    return lines


def create_mask(
    mod_fn: Callable, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = None  # noqa: N803
) -> Tensor:
    """Return a mask function evaluated to a bool tensor (B, H, Q_LEN, KV_LEN). A score function gives True where the score is
    not -inf. AssertionError for a function of neither 4 nor 5 parameters."""
    sizes = (B or 1, H or 1, Q_LEN, KV_LEN)
    positions = _indices(*sizes, device=device)
    if _element_parameters(mod_fn) == 4:
        return over_elements(mod_fn)(*positions)
    scores = op("zeros")(list(sizes), device=device)
    return ~op("isneginf")(over_elements(mod_fn, with_score=True)(scores, *positions))


def _element_parameters(function: Callable) -> int:
    """4 for a mask function, 5 for a score function. AssertionError for others."""
    count = _count_parameters(function)
    if count not in (4, 5):
        raise AssertionError(f"Expected 4 or 5 positional args, got {count}")
    return count


def _count_parameters(function: Callable) -> int:
    """Count the positional parameters without a default of a mask or score function."""
    function = getattr(function, "func", function)
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    if code is None:
        code = type(function).__call__.__code__
    bound = int(hasattr(function, "__self__") or not hasattr(function, "__code__") and not hasattr(function, "__func__"))
    defaults = getattr(getattr(function, "__func__", function), "__defaults__", None) or ()
    count = code.co_argcount - bound - len(defaults)
    return 4 if code.co_flags & 4 and count <= 4 else count


def create_block_mask(
    mask_mod: MaskFunction, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = None,  # noqa: N803
    BLOCK_SIZE: int | tuple[int, int] = DEFAULT_BLOCK_SIZE, _compile: bool = False,  # noqa: N803
    separate_full_blocks: bool = True, compute_dq_write_order: bool = False, dq_kv_order: bool = True,
) -> BlockMask:  # fmt: skip
    """Return the BlockMask of a mask function, which is evaluated for every element. B or H may be None, or 1, if the mask does
    not depend on it.

    With `separate_full_blocks`, fully unmasked blocks are listed separately. The other options have no effect: they set the
    order of writes on GPUs.
    """
    if _element_parameters(mask_mod) != 4:
        raise AssertionError(f"create-block_mask requires a mask_mod function! Got {mask_mod}")
    size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else tuple(BLOCK_SIZE)
    rows, columns = size
    mask = create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device)
    padded = op("constant_pad_nd")(mask, [0, -KV_LEN % columns, 0, -Q_LEN % rows])
    batches, heads, height, width = padded.shape
    tiles = padded.view([batches, heads, height // rows, rows, width // columns, columns])
    counts = tiles.sum(dim=[3, 5])
    if separate_full_blocks:
        is_full = counts == rows * columns
        partial, full = to_order((counts > 0) & ~is_full), to_order(is_full)
    else:
        partial, full = to_order(counts > 0), (None, None)
    return BlockMask.from_kv_blocks(*partial, *full, size, mask_mod, (Q_LEN, KV_LEN))


def and_masks(*mask_mods: MaskFunction) -> MaskFunction:
    """Return a mask function that is true where all of these are. RuntimeError if one is no function."""
    _check_functions(mask_mods, "and_masks")

    def and_mask(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        result = b.new_ones((), dtype=bool_)
        for mask in mask_mods:
            result = result & mask(b, h, q_idx, kv_idx)
        return result

    return and_mask


def or_masks(*mask_mods: MaskFunction) -> MaskFunction:
    """Return a mask function that is true where any of these is. RuntimeError if one is no function."""
    _check_functions(mask_mods, "or_masks")

    def or_mask(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        result = b.new_zeros((), dtype=bool_)
        for mask in mask_mods:
            result = result | mask(b, h, q_idx, kv_idx)
        return result

    return or_mask


def _check_functions(functions: tuple, name: str) -> None:
    if not all(callable(function) for function in functions):
        raise RuntimeError(f"All inputs should be callable mask_mods: {functions}")
