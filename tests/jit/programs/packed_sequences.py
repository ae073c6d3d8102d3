"""Packed batches: as parameters and results, packed and padded in scripts, and through recurrent layers."""

from typing import List, Optional, Tuple, Union
import rushlight as torch
from rushlight import Tensor, nn
from rushlight.nn.utils.rnn import PackedSequence, pack_padded_sequence, pack_sequence, pad_packed_sequence, pad_sequence


def packed():
    return pack_padded_sequence(torch.ones(3, 2, 4), torch.tensor([3, 1]))


def packed_and_padded(x: Tensor, l: Tensor):
    p = pack_padded_sequence(x, l)
    return pad_packed_sequence(p)
#: (torch.ones(3, 2, 4), torch.tensor([3, 1]))


def sorted_and_padded(x: Tensor, l: Tensor):
    p = pack_padded_sequence(x, l, batch_first=True, enforce_sorted=False)
    return pad_packed_sequence(p, batch_first=True, total_length=5)
#: (torch.ones(2, 3, 4), torch.tensor([1, 3]))


def packed_parts(x: Tensor, l: Tensor):
    p = pack_padded_sequence(x, l)
    return p.data, p.batch_sizes, p.sorted_indices, p.unsorted_indices
#: (torch.ones(3, 2, 4), torch.tensor([3, 1]))


def packed_data(p: PackedSequence):
    return p.data * 2
#: (packed(),)


def padded(p: PackedSequence):
    return pad_packed_sequence(p)
#: (packed(),)


def packed_as_it_is(p: PackedSequence) -> PackedSequence:
    return p
#: (packed(),)


def padded_list(x: List[Tensor]):
    return pad_sequence(x)
#: ([torch.ones(2), torch.ones(3)],)


def packed_list(x: List[Tensor]):
    return pack_sequence(x)
#: ([torch.ones(3), torch.ones(2)],)


class OfGru(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.r = nn.GRU(4, 3)
        for p in self.parameters():
            nn.init.constant_(p, 0.1)

    def forward(self, x: Tensor, l: Tensor):
        p = pack_padded_sequence(x, l)
        o, h = self.r(p)
        return pad_packed_sequence(o), h
#: (torch.ones(3, 2, 4), torch.tensor([3, 1]))


class OfLstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.r = nn.LSTM(4, 3, batch_first=True, bidirectional=True)
        for p in self.parameters():
            nn.init.constant_(p, 0.1)

    def forward(self, x: Tensor, l: Tensor):
        p = pack_padded_sequence(x, l, batch_first=True, enforce_sorted=False)
        o, (h, c) = self.r(p)
        y, n = pad_packed_sequence(o, batch_first=True)
        return y, n, h, c
#: (torch.ones(2, 3, 4), torch.tensor([1, 3]))


class OfRnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.r = nn.RNN(4, 3)
        for p in self.parameters():
            nn.init.constant_(p, 0.1)

    def forward(self, p: PackedSequence):
        o, h = self.r(p)
        return o, h
#: (packed(),)


class WithState(nn.Module):
    def __init__(self):
        super().__init__()
        self.r = nn.GRU(4, 3)
        for p in self.parameters():
            nn.init.constant_(p, 0.1)

    def forward(self, p: PackedSequence, h: Tensor):
        o, h = self.r(p, h)
        return o.data, h
#: (packed(), torch.ones(1, 2, 3))


def unpacked_tuple(p: PackedSequence):
    a, b, c, d = p
    return a, b
#: (packed(),)


def packed_by_index(p: PackedSequence):
    return p[0], p[1], len(p)
#: (packed(),)


def is_sorted(p: PackedSequence):
    if p.sorted_indices is None:
        return 1
    return 2
#: (packed(),)


def packed_as_tuple(p: Tuple[Tensor, Tensor, Optional[Tensor], Optional[Tensor]]):
    return p[0]
#: (packed(),)


def optional_packed(p: Optional[PackedSequence]):
    if p is None:
        return torch.ones(1)
    return p.data
#: (packed(),)


def listed_packed(p: List[PackedSequence]):
    return p[0].data
#: ([packed()],)
