"""The compiler: a typed subset of Python that CPython runs as it is, and that LLVM makes machine code of.

A `Source` is functions over the fields of one state. `Interpreted` and `Compiled` are the two modes of a source at work;
`save` and `restore` carry a state between them. The design is in docs/decisions/0009. Nothing here knows what a stream is.
"""
