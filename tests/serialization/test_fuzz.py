"""Random damage to valid files: every outcome is a value or one of the two errors, quickly and in little memory.

`python -m tests.serialization.test_fuzz SECONDS` runs the same for longer, from a seed that it prints.
"""

from __future__ import annotations

import pickle
import random
import sys
import time
import zlib

import pytest

from tests.serialization.archives import checkpoint, example, legacy_bytes, load_bytes, save_bytes, tensor_program

SEED = 20_240_601
CASES = 700


def mutate(data: bytes, chance: random.Random) -> bytes:
    """Change, insert, remove, repeat or cut a few bytes."""
    changed = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        position = chance.randrange(len(changed) + 1)
        length = chance.choice([1, 1, 1, 2, 4, 8, 30])
        kind = chance.randrange(6)
        if kind <= 1:
            changed[position : position + 1] = bytes((chance.randrange(256),))
        elif kind == 2:
            changed[position:position] = chance.randbytes(length)
        elif kind == 3:
            del changed[position : position + length]
        elif kind == 4:
            changed[position : position + length] = chance.choice([b"\xff", b"\x00", b"\x7f"]) * length
        else:
            source = chance.randrange(len(changed) + 1)
            changed[position:position] = changed[source : source + length]
    return bytes(changed)


def survives(data: bytes) -> bool:
    """Whether loading gives a value; any error but the two that are documented propagates."""
    try:
        touch(load_bytes(data))
    except (RuntimeError, pickle.UnpicklingError) as error:
        assert "<BytesIO>" in str(error)
        return False
    return True


def touch(value: object) -> None:
    """Read what was loaded, so that bad geometry would show."""
    if hasattr(value, "untyped_storage"):
        if 0 < value.numel() < 10_000 and value.device.type == "cpu":
            value.detach().numpy().sum()
    elif isinstance(value, dict):
        for part in value.values():
            touch(part)
    elif isinstance(value, list | tuple):
        for part in value:
            touch(part)


def program() -> bytes:
    """The pickle of a rich object, without header and end."""
    data = save_bytes({**example(), "more": [{1, 2}, b"ab", bytearray(b"c"), 1j, 1 << 70]})
    start = data.index(b"\x80\x02") + 2
    return data[start : data.index(b"PK\x07\x08", start) - 1]


def damaged(kind: str, chance: random.Random) -> bytes:
    """A damaged file of a kind: the whole archive, only its pickle (with a valid checksum), or the legacy format."""
    if kind == "archive":
        return mutate(save_bytes(example()), chance)
    if kind == "legacy":
        return mutate(legacy_bytes(example()), chance)
    storages = {"0": bytes(96), "1": bytes(8)}
    return checkpoint(mutate(program(), chance), storages)


@pytest.mark.parametrize("kind", ["archive", "pickle", "legacy"])
def test_damaged_files(kind):
    chance = random.Random(SEED + zlib.crc32(kind.encode()))
    started = time.perf_counter()
    loaded = sum(survives(damaged(kind, chance)) for _ in range(CASES))
    assert loaded < CASES
    assert time.perf_counter() - started < 60


def test_random_instructions():
    chance = random.Random(SEED)
    codes = b"(.012NKMJGXB\x88\x89]}\x8f)\x85\x86\x87tlaesubRQq\x94hj\x93\x8c\x8a"
    for _ in range(CASES):
        survives(checkpoint(bytes(chance.choice(codes) for _ in range(chance.randint(1, 60)))))


def test_random_geometry():
    chance = random.Random(SEED)
    numbers = [0, 1, 2, 3, 4, 5, 7, 24, 1 << 31, 1 << 61, (1 << 63) - 1]
    for _ in range(CASES):
        rank = chance.randint(0, 4)
        pick = [numbers if chance.random() < 0.3 else numbers[:8] for _ in range(2 * rank)]
        sizes, strides = (tuple(map(chance.choice, pick[side::2])) for side in (0, 1))
        offset = chance.choice(numbers)
        survives(checkpoint(tensor_program(24, offset, sizes, strides), {"0": bytes(96)}))


if __name__ == "__main__":
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")
    generator, stop = random.Random(seed), time.time() + float(sys.argv[1])
    count = 0
    while time.time() < stop:
        survives(damaged(generator.choice(["archive", "pickle", "legacy"]), generator))
        count += 1
    print(f"{count} files")
