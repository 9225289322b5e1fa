"""Packing: a payload's text as fewer bytes."""

import zlib


def pack(text: str) -> bytes:
    """Return a text compressed, in the format of zlib (RFC 1950)."""
    return zlib.compress(text.encode())


def unpack(packed: bytes, *, most: int) -> str:
    """Return the text that was packed.

    Raises ValueError when that is not what it holds, or when it has more than `most` bytes: no more are unpacked.
    """
    unpacker = zlib.decompressobj()
    try:
        unpacked = unpacker.decompress(packed, most + 1)
    except zlib.error as error:
        raise ValueError(f"its compressed payload is broken: {error}") from None
    if len(unpacked) > most:
        raise ValueError(f"its compressed payload has over {most} bytes: at most {most} are allowed")
    if not unpacker.eof or unpacker.unused_data:
        raise ValueError("its compressed payload is broken: it does not end where its data does")
    return unpacked.decode()
