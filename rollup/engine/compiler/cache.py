"""Machine code, kept on disk as object code under the hash of what it was made of.

LLVM takes four fifths of the time of a cold compilation, so the compiled mode of a program that any process of this user
has run before begins after a few milliseconds. `later` compiles in a thread: LLVM holds no lock of Python's.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import tempfile
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

import llvmlite
import llvmlite.binding as llvm

from rollup.core.cache import cache_root
from rollup.engine.compiler.source import Source
from rollup.engine.compiler.subset import Translation
from rollup.engine.compiler.types import type_of

_CTYPES: dict[str, Any] = {"int": ctypes.c_int64, "float": ctypes.c_double, "bool": ctypes.c_bool}
_DIGEST = 32
"""The bytes before object code: its hash, since a file may have been cut off."""


class Code:
    """The machine code of a source: its entries as functions that take the address of the state first."""

    def __init__(self, source: Source, checked: bool, object_code: bytes | None) -> None:
        target = _target()
        module = llvm.parse_assembly("" if object_code else Translation(source, checked).text())
        if object_code is None:
            _optimize(module, target)
        self._engine = llvm.create_mcjit_compiler(module, target)
        self.object_code = object_code or b""
        if object_code is not None:
            self._engine.add_object_file(llvm.ObjectFileRef.from_data(object_code))
        else:
            self._engine.set_object_cache(self._made, lambda module: None)
        self._engine.finalize_object()
        self.entries: dict[str, Callable[..., None]] = {}
        for name, types in source.entries.items():
            kinds = [_CTYPES[part] for each in types for part in type_of(each).parts]
            self.entries[name] = self._function(f"entry_{name}", kinds)
        self.dispose = self._function("dispose", [])

    def _function(self, name: str, kinds: list[Any]) -> Callable[..., None]:
        return ctypes.CFUNCTYPE(None, ctypes.c_int64, *kinds)(self._engine.get_function_address(name))

    def _made(self, module: Any, object_code: bytes) -> None:
        self.object_code = object_code


def _target() -> Any:
    """This machine's processor, anew for each engine, which frees it."""
    _initialize()
    triple = llvm.Target.from_default_triple()
    return triple.create_target_machine(cpu=llvm.get_host_cpu_name(), opt=2)


@cache
def _initialize() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


def _optimize(module: Any, target: Any) -> None:
    """The first level is as quick as the second in three quarters of the time; loops here are short."""
    options = llvm.create_pipeline_tuning_options(speed_level=1)
    options.inlining_threshold = 100
    options.loop_vectorization = options.slp_vectorization = options.loop_unrolling = False
    builder = llvm.create_pass_builder(target, options)
    builder.getModulePassManager().run(module, builder)


@cache
def _compiler() -> str:
    """What machine code depends on beside the source: this compiler, LLVM and the processor."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    text = b"".join(each.read_bytes() for each in files)
    here = f"{llvmlite.__version__} {llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()}"
    return hashlib.sha256(text + here.encode()).hexdigest()


_CODES: dict[tuple[str, bool], Code] = {}
_LOCK = Lock()


def code(source: Source, checked: bool = False) -> Code:
    """The machine code of a source: that of this process, or from disk, or compiled now."""
    key = source.key, checked
    with _LOCK:
        if key not in _CODES:
            _CODES[key] = _loaded(source, checked)
        return _CODES[key]


def later(source: Source, checked: bool = False) -> Future[Code]:
    """The machine code of a source, from a thread that compiles one source after the other."""
    return _thread().submit(code, source, checked)


@cache
def _thread() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, "compiler")


def _loaded(source: Source, checked: bool) -> Code:
    name = hashlib.sha256(f"{source.key} {checked} {_compiler()}".encode()).hexdigest()[:32]
    file = cache_root() / "programs" / f"{name}.o"
    try:
        digest, object_code = (found := file.read_bytes())[:_DIGEST], found[_DIGEST:]
        if digest == hashlib.sha256(object_code).digest():
            return Code(source, checked, object_code)
    except OSError:
        pass
    made = Code(source, checked, None)
    _keep(file, made.object_code)
    return made


def _keep(file: Path, object_code: bytes) -> None:
    """Write the file at once or not at all, since other processes read it. Without a folder to write to nothing is kept."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=file.parent, suffix=".tmp")
        with os.fdopen(handle, "wb") as out:
            out.write(hashlib.sha256(object_code).digest() + object_code)
        os.replace(temporary, file)
    except OSError:
        pass
