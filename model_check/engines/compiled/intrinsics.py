"""Machine instructions that numba has no name for."""

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic


def _prefetch(typing_context: Any, array: Any, index: Any) -> Any:
    """Ask for the cache line of `array[index]`, without waiting for it."""
    signature = types.void(array, index)

    def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        data = context.make_array(sig.args[0])(context, builder, arguments[0]).data
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        function_type = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        function = builder.module.declare_intrinsic("llvm.prefetch", [byte], function_type)
        read, every_cache_level, data_cache = number(0), number(3), number(1)
        address = builder.bitcast(builder.gep(data, [arguments[1]]), byte)
        builder.call(function, [address, read, every_cache_level, data_cache])
        return context.get_dummy_value()

    return signature, generate


def _lowest_bit(typing_context: Any, value: Any) -> Any:
    """The number of the lowest bit that is set in a word that is not zero."""

    def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.IntType(1)(1))

    return types.uint64(types.uint64), generate


def _load_word(typing_context: Any, array: Any, byte: Any) -> Any:
    """Eight bytes of a byte array, starting at any byte, as one word."""

    def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        data = context.make_array(sig.args[0])(context, builder, arguments[0]).data
        address = builder.bitcast(builder.gep(data, [arguments[1]]), ir.IntType(64).as_pointer())
        return builder.load(address, align=1)

    return types.uint64(array, byte), generate


def _store_word(typing_context: Any, array: Any, byte: Any, word: Any) -> Any:
    """Put a word into eight bytes of a byte array."""

    def generate(context: Any, builder: Any, sig: Any, arguments: Any) -> Any:
        data = context.make_array(sig.args[0])(context, builder, arguments[0]).data
        address = builder.bitcast(builder.gep(data, [arguments[1]]), ir.IntType(64).as_pointer())
        builder.store(arguments[2], address, align=1)
        return context.get_dummy_value()

    return types.void(array, byte, types.uint64), generate


# numba passes the typing context itself: a kernel calls these with one argument less than they are defined with.
prefetch: Any = intrinsic(_prefetch)
lowest_bit: Any = intrinsic(_lowest_bit)
load_word: Any = intrinsic(_load_word)
store_word: Any = intrinsic(_store_word)
