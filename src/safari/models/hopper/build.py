"""Writes the kernels' PTX from their source: make kernels

Needs NVIDIA's runtime compiler, no GPU.
"""

import ctypes
import glob
import hashlib
import sys
from pathlib import Path

HERE = Path(__file__).parent
SOURCES = ("device.h", "convolution.cu", "build.py")
KERNELS = {
    "forward1": "FORWARD(forward1, Layer1)",
    "forward2": "FORWARD(forward2, Layer2)",
    "backward2": "BACKWARD(backward2)",
    "kernel1": "KERNEL(kernel1, Layer1)",
    "kernel2": "KERNEL(kernel2, Layer2)",
}
OPTIONS = ("--gpu-architecture=compute_90a", "--std=c++17", "-default-device")


def main() -> None:
    for name in KERNELS:
        (HERE / f"{name}.ptx").write_text(f"{stamp()}\n{_compiled(source(name))}")
        print(name)


def stamp() -> str:
    """Says of which source a kernel is; a test compares."""
    return "// of " + hashlib.sha256(b"".join((HERE / name).read_bytes() for name in SOURCES)).hexdigest()


def source(name: str) -> str:
    general = (
        "template <int N> DEVICE void wgmma_turned(float (&d)[N / 2], const unsigned (&a)[4], Matrix b);\n"
    )
    products = "".join((_product(128), _product(136), general, _product(16, True), _product(32, True)))
    return (
        f"{(HERE / 'device.h').read_text()}{products}{(HERE / 'convolution.cu').read_text()}{KERNELS[name]}\n"
    )


def _product(columns: int, turned: bool = False) -> str:
    """The function around one wgmma instruction: 64 rows by so many columns, sixteen summed over.

    `turned` takes the left factor from registers, and the right one as rows of what is summed over.
    """
    count = columns // 2
    sums = ", ".join(f"%{i}" for i in range(count))
    results = ", ".join(f'"+f"(d[{i}])' for i in range(count))
    if turned:
        registers = ", ".join(f"%{count + i}" for i in range(4))
        operands, last = f"{{{registers}}}, %{count + 4}, p, 1, 1, 1", count + 5
        given = ", ".join(f'"r"(a[{i}])' for i in range(4)) + ', "l"(b)'
        name, left = f"template <> DEVICE void wgmma_turned<{columns}>", "const unsigned (&a)[4]"
    else:
        operands, last = f"%{count}, %{count + 1}, p, 1, 1, 0, 0", count + 2
        given = '"l"(a), "l"(b)'
        name, left = f"DEVICE void wgmma_{columns}", "Matrix a"
    code = f"wgmma.mma_async.sync.aligned.m64n{columns}k16.f32.bf16.bf16 {{{sums}}}, {operands};"
    text = f"{{\\n.reg .pred p;\\nsetp.ne.b32 p, %{last}, 0;\\n{code}\\n}}\\n"
    head = f"{name}(float (&d)[{count}], {left}, Matrix b)"
    return f'{head} {{\n  asm volatile("{text}" : {results} : {given}, "r"(1) : "memory");\n}}\n'


def _compiled(text: str) -> str:
    compiler, program, size = _compiler(), ctypes.c_void_p(), ctypes.c_size_t()
    compiler.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"convolution.cu", 0, None, None)
    options = (ctypes.c_char_p * len(OPTIONS))(*(option.encode() for option in OPTIONS))
    failed = compiler.nvrtcCompileProgram(program, len(OPTIONS), options)
    what = "ProgramLog" if failed else "PTX"
    getattr(compiler, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
    found = ctypes.create_string_buffer(size.value)
    getattr(compiler, f"nvrtcGet{what}")(program, found)
    if failed:
        sys.exit(found.value.decode())
    return found.value.decode()


def _compiler() -> ctypes.CDLL:
    found = [
        path for root in sys.path for path in glob.glob(f"{root}/nvidia/**/libnvrtc.so.*", recursive=True)
    ]
    found += glob.glob("/usr/local/cuda*/lib64/libnvrtc.so.*")
    libraries = [path for path in found if "builtins" not in path]
    if not libraries:
        sys.exit("NVIDIA's runtime compiler is not here: make kernels installs it")
    return ctypes.CDLL(libraries[0])


if __name__ == "__main__":
    main()
