"""The ways in which a file is damaged."""

import random
from collections.abc import Callable


def flip_bits(content: bytes, chance: random.Random) -> bytes:
    changed = bytearray(content)
    changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def _over(content: bytes, new: bytes, chance: random.Random) -> bytes:
    start = chance.randrange(max(1, len(content) - len(new)))
    return content[:start] + new[: len(content) - start] + content[start + len(new) :]


Damage = Callable[[bytes, random.Random], bytes | None]
DAMAGES: dict[str, Damage] = {
    "emptied": lambda content, chance: b"",
    "cut to a quarter": lambda content, chance: content[: len(content) // 4],
    "cut to a half": lambda content, chance: content[: len(content) // 2],
    "cut somewhere": lambda content, chance: content[: chance.randrange(len(content))],
    "last byte lost": lambda content, chance: content[:-1],
    "first bit": lambda content, chance: bytes([content[0] ^ 1]) + content[1:],
    "a bit": flip_bits,
    "another bit": flip_bits,
    "a third bit": flip_bits,
    "a bit of the last 64 bytes": lambda content, chance: content[:-64] + flip_bits(content[-64:], chance),
    "zeros": lambda content, chance: bytes(len(content)),
    "some zeros": lambda content, chance: _over(content, bytes(64), chance),
    "garbage": lambda content, chance: chance.randbytes(len(content)),
    "some garbage": lambda content, chance: _over(content, chance.randbytes(16), chance),
    "longer": lambda content, chance: content + chance.randbytes(16),
    "missing": lambda content, chance: None,
}
