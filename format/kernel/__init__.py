"""The hot loops over the bytes of a segment, one module for each noun, compiled by Cython where that is possible.

Import the modules that you need: ``from format.kernel import headers``. This file imports nothing, so a command loads
only the modules that it uses.

The compiled modules are plain Python files. Each has a ``.pxd`` file beside it, which gives Cython the C types, and
setup.py compiles the two when the package is installed. Without a C compiler the same Python files run as they are.
The compiled and the plain form of a module, its two twins, return the same columns and the same errors.

The other modules are never compiled. ``memory``, ``numbers``, ``crc`` and ``utf8`` hold small functions that several
loops call: the ``.py`` file has them in Python, and the ``.pxd`` file as inline C functions. ``tables`` and
``header_layout`` do the same for constants. So no compiled module needs another one, and any of them may be missing.

Rules for the compiled modules, which keep the twins equal:

- Buffers are memoryviews of bytes, tables are memoryviews of int64: indexing them in Python gives ints.
- The code checks each index itself, since the compiled twin checks none.
- No sum may leave 64 bits, since it would wrap in the compiled twin only.
- Damage is a number in a status row, never an exception.
"""
