r"""Build convcore's kernels: every .pyx below convcore/engine is an extension module.

`python setup.py build_ext --inplace` rebuilds what changed, and nothing else: a module, or a C file
for one instruction set, is made again if the text of what it includes changed, or its flags; dates
do not count. The .pyx named _isa links the microkernels, which are all the .c files there.

Everything that is not about compiling stands in pyproject.toml. Switches, from the environment:

CONVCORE_OPENMP=0       build without OpenMP: everything works, on one thread
CONVCORE_LIMITED_API=0  build for this Python alone, not for every one since 3.11 (abi3): calls are
                        some 0.1 us cheaper, and profilers and coverage see into the kernels
CONVCORE_DEBUG=1        developer's build, little optimised, with debug information; with gcc and
                        clang AddressSanitizer and UndefinedBehaviorSanitizer watch every access,
                        and have to be loaded before Python (gcc on Linux):

    LD_PRELOAD="$(gcc -print-file-name=libasan.so) $(gcc -print-file-name=libubsan.so)" \
    ASAN_OPTIONS=detect_leaks=0 PYTHONMALLOC=malloc \
    pytest --exact-scratch --capture=sys -m 'not subprocess'

CONVCORE_DEBUG=thread   the same, watched by ThreadSanitizer: `bash .ci/run races` runs it
"""

import errno
import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from itertools import product
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py
from setuptools.errors import CompileError, LinkError

DEBUG = os.environ.get("CONVCORE_DEBUG", "0") != "0"
RACES = os.environ.get("CONVCORE_DEBUG") == "thread"
OPENMP = os.environ.get("CONVCORE_OPENMP", "1") != "0"
# Free-threaded interpreters have no limited API that Cython could compile for.
LIMITED_API = os.environ.get("CONVCORE_LIMITED_API", "1") != "0" and not sysconfig.get_config_var(
    "Py_GIL_DISABLED"
)

# Each kind of build has its own directory: compilers compare dates, not flags, and would take one
# kind's files for the other's.
BUILD = "build/" + "-".join(
    [sys.implementation.cache_tag]
    + ["abi3"] * LIMITED_API
    + ["serial"] * (not OPENMP)
    + ["debug"] * DEBUG
    + ["thread"] * RACES
)

ENGINE = Path("convcore/engine")
# The microkernels in C, compiled once an instruction set. Cython writes its C under BUILD.
MICROKERNELS = sorted(path for path in ENGINE.rglob("*.c") if not path.with_suffix(".pyx").exists())
# The C headers that Cython reads through CYTHON_VIEW, which is written at build time.
DECLARED_HEADERS = (
    "conv/arguments.h",
    *(f"conv/{n}/{n}.h" for n in ("winograd", "few_channels", "depthwise", "grouped", "indirect")),
    *(
        "conv/microkernels.h",
        "conv/bfloat16/bfloat16.h",
        "layers/pooling.h",
        "layers/microkernels.h",
    ),
)
CYTHON_VIEW = ENGINE / "runtime" / "_microkernels.pxd"
# Instruction sets that have more than the one before them for products in bfloat16 only.
PAIRS, TILES = "avx512_bf16", "amx"
# A C header in quotation marks, named by C or by Cython.
HEADER = re.compile(r'^\s*(?:#\s*include|cdef extern from)\s+"([^"]+)"', re.MULTILINE)

# A sum of the widest vectors, for the assembler to know too.
VECTOR_PROBE = """
typedef float vec __attribute__((vector_size(64)));
vec sum(vec a, vec b) { return a + b; }
"""

# Of a loop in vectors, gcc writes the last elements in shorter vectors, and once more one by one: a
# tenth of the microkernels' code.  This has it write them one by one alone.
ONE_REST = ["--param=vect-epilogues-nomask=0"]

# The kernels work on raw pointers, which Cython's own checks know nothing of; sanitizers do.
# Functions are builtins, which need no signatures to be called: without Cython's own type of
# function a built module is 18 of 87 kB smaller (`ls -l`).
DIRECTIVES = {"language_level": 3, "cdivision": True, "binding": False}

SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]
if RACES:
    SANITIZERS = ["-fsanitize=thread"]

OPENMP_PROBE = r"""
#include <omp.h>
#include <stdio.h>
int main(void)
{
    int threads = 0;
    #pragma omp parallel reduction(+:threads)
    threads += 1;
    printf("%d", _OPENMP);
    return threads < 1;
}
"""

OPENMP_REMEDIES = """\
  For all cores: install the compiler's OpenMP library (gcc's is libgomp; clang's is libomp-dev on
  Debian, and Homebrew's libomp on macOS, with its include and lib folders in CPPFLAGS and LDFLAGS),
  or set CC to a compiler that has it, or set CONVCORE_OPENMP=0 to say that one thread is meant."""


def compile_flags(compiler_type):
    """Flags for the C compiler: nothing that other machines lack, nothing that changes results."""
    if compiler_type == "msvc":
        return ["/Od", "/Zi"] if DEBUG else ["/O2"]
    if DEBUG:
        return ["-O1", "-g", "-fno-omit-frame-pointer", *SANITIZERS]
    # Nobody reads errno or traps on a NaN here, and without these two few loops vectorise.
    # And nothing unwinds through C: the tables for it are a tenth of a small module.
    flags = ["-O3", "-g0", "-fno-math-errno", "-fno-trapping-math"]
    flags += ["-fno-asynchronous-unwind-tables"]
    # Python's functions are called by their addresses: 0.8 kB less a compressed module.
    return [*flags, "-fno-plt"] if sys.platform.startswith("linux") else flags


# Modules whose loops over elements are the microkernels': small is as fast, and the wheel lighter.
HANDING_ON = (
    "_clip_grad", "_depthwise_float", "_elementwise", "_few_channels", "_few_channels_input",
    "_few_channels_weight", "_indirect_weight", "_kernel", "_max_pool", "_optimizers",
    "_separable", "_softmax",
)  # fmt: skip


def is_small(module):
    """Whether a module is compiled for size: its name, from convcore on."""
    return ".runtime." in module or module.rpartition(".")[2] in HANDING_ON


def link_flags(compiler_type):
    """Flags for the linker: release builds carry no symbol table."""
    if DEBUG:
        return [] if compiler_type == "msvc" else SANITIZERS
    return ["-Wl,-s"] if compiler_type == "unix" and sys.platform.startswith("linux") else []


def openmp_candidates(compiler_type):
    """Pairs of compiler and linker flags that may switch OpenMP on, the likeliest first."""
    if compiler_type == "msvc":
        return [(["/openmp"], [])]
    plain = (["-fopenmp"], ["-fopenmp"])
    if sys.platform.startswith("linux"):
        # gcc's calls of libgomp end in convcore/engine/runtime/team.h: the library is not needed.
        plain = (["-fopenmp"], ["-Wl,--as-needed", "-fopenmp"])
    # Apple's clang has the pragmas, but neither the driver's flag nor the library.
    apple = (["-Xpreprocessor", "-fopenmp"], ["-lomp"])
    return [plain, apple] if sys.platform == "darwin" else [plain]


def openmp_date(compiler, compile_args, link_args):
    """Compile and run a parallel program; the value of _OPENMP, or None if that fails.

    What is built for another processor cannot be run here: that it links is all there is to know.
    """
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "probe.c")
        source.write_text(OPENMP_PROBE)
        program = Path(folder, compiler.executable_filename("probe"))
        try:
            objects = compiler.compile([str(source)], folder, extra_postargs=compile_args)
            compiler.link_executable(objects, "probe", folder, extra_postargs=link_args)
            run = subprocess.run([program], capture_output=True, text=True, timeout=60)
        except (CompileError, LinkError, OSError, subprocess.TimeoutExpired) as error:
            foreign = isinstance(error, OSError) and error.errno == errno.ENOEXEC
            return "of a date unknown" if foreign else None
    return run.stdout if run.returncode == 0 else None


def openmp_flags(compiler):
    """Find the flags for OpenMP, and say in a sentence what was found."""
    if not OPENMP:
        print("convcore: building without OpenMP, as CONVCORE_OPENMP=0 asks: one thread.")
        return [], []
    candidates = openmp_candidates(compiler.compiler_type)
    for compile_args, link_args in candidates:
        date = openmp_date(compiler, compile_args, link_args)
        if date:
            print(f"convcore: building with OpenMP {date} ({' '.join(compile_args)}).")
            return compile_args, link_args
    tried = " or ".join(" ".join(compile_args) for compile_args, _ in candidates)
    print(
        "convcore: building WITHOUT OpenMP, for one thread: a small parallel program did not "
        f"compile, link and run with {tried}.\n{OPENMP_REMEDIES}"
    )
    return [], []


def cpus():
    """Count the processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def without_absolute_rpath(command):
    """Drop -Wl,-rpath,/...: some interpreters were linked with one and hand it on to extensions."""
    return [word for word in command if not re.match(r"-Wl,(-rpath|-R)[,=]/", word)]


def scipy_blas_int():
    """Give the C type of BLAS's integers in the SciPy of this environment.

    SciPy names it blas_int where it may be 64 bits wide, and takes plain ints elsewhere. Read as
    text, for neither C nor Cython can ask whether another module's declaration exists.
    """
    declarations = Path(find_spec("scipy").origin).parent / "linalg" / "cython_blas.pxd"
    found = re.search(r"^ctypedef\s+(\w+)\s+blas_int\b", declarations.read_text(), re.MULTILINE)
    return "int64_t" if found and found[1] != "int" else "int"


def instruction_sets(compiler):
    """Map each instruction set to compile for to the compiler's flags, base first."""
    sets = {"base": []}
    # The loops are the same in each, and sanitizers take minutes to be compiled in.
    if DEBUG or compiler.compiler_type != "unix":
        return sets
    if platform_machine() in ("x86_64", "amd64"):
        # Few processors are left with it, and the wheel carries it for them: a third smaller so.
        sets["base"] = ["-Os"]
        sets["avx2"] = ["-mavx2", "-mfma"]
        sets["avx512"] = ["-mfma", "-mavx512f", "-mavx512dq", "-mavx512bw", "-mavx512vl"]
        sets["avx512"] += ["-mprefer-vector-width=512"]
        if knows_flags(compiler, ONE_REST):
            sets["avx2"] += ONE_REST
            sets["avx512"] += ONE_REST
        sets[PAIRS] = [*sets["avx512"], "-mavx512bf16"]
        if sys.platform.startswith("linux"):  # which grants the tiles' registers
            sets[TILES] = [*sets[PAIRS], "-mamx-tile", "-mamx-bf16"]
    known = [isa for isa in sets if isa == "base" or knows_flags(compiler, sets[isa])]
    for isa in sets.keys() - known:
        print(
            f"convcore: building WITHOUT {isa}, for processors that have less: the compiler "
            f"does not know {' '.join(sets[isa])}. For all of them set CC to a newer one."
        )
    return {isa: sets[isa] for isa in known}


def knows_flags(compiler, flags):
    """Return whether the compiler, and its assembler, know an instruction set's flags."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "probe.c")
        source.write_text(VECTOR_PROBE)
        try:
            compiler.compile([str(source)], folder, extra_postargs=flags)
        except CompileError:
            return False
    return True


def platform_machine():
    """Name the processor that is built for, which is not always the one that builds."""
    flags = os.environ.get("ARCHFLAGS", "")
    if sys.platform == "darwin" and "-arch" in flags:
        return "universal" if flags.count("-arch") > 1 else flags.split()[-1]
    return sysconfig.get_platform().split("-")[-1].lower()


def with_headers(sources):
    """List files and all that they include from this tree, directly or not."""
    found, left = set(), [Path(source) for source in sources]
    while left:
        path = left.pop()
        if path not in found:
            found.add(path)
            for name in HEADER.findall(path.read_text("utf-8")):
                places = (path.parent / name, ENGINE / name)
                left += [Path(os.path.normpath(at)) for at in places if at.exists()][:1]
    return sorted(found)


def digest(paths, *settings):
    """Hash the text of files, and the settings that they are built with."""
    state = hashlib.sha256(repr(settings).encode())
    for path in paths:
        state.update(path.name.encode() + b"\0" + path.read_bytes())
    return state.hexdigest()


def stamp_of(target):
    """Name the file that says what a target was made from."""
    return Path(BUILD, "stamps", re.sub(r"\W+", "-", str(target)))


def is_made(target, made_from):
    """Return whether a target is there, made from what has this digest; if not, forget it."""
    stamp = stamp_of(target)
    if target.exists() and stamp.exists() and stamp.read_text() == made_from:
        return True
    stamp.unlink(missing_ok=True)
    target.unlink(missing_ok=True)
    return False


def mark_made(target, made_from):
    stamp = stamp_of(target)
    stamp.parent.mkdir(parents=True, exist_ok=True)
    stamp.write_text(made_from)


def cython_view(header):
    """Declare a C header's enums, int macros, structs and function types in Cython.

    Names lose their prefix: convcore_few_channels is FewChannels, CONVCORE_CLAMP is CLAMP.
    """
    source = (ENGINE / header).read_text("utf-8")
    source = re.sub(r"/\*.*?\*/", "", source, flags=re.DOTALL)
    macros = re.findall(r"^#define (CONVCORE_\w+) \d+$", source, re.MULTILINE)
    source = re.sub(r"^#(.*\\\n)*.*", "", source, flags=re.MULTILINE)
    lines = [f'cdef extern from "{header}":']
    lines += [f"    enum: {declared(name)}" for name in macros]
    pattern = r"\benum \{(.*?)\};|typedef struct \{(.*?)\} (\w+);|typedef ([^{};]*);"
    for constants, fields, name, function in re.findall(pattern, source, re.DOTALL):
        names = re.findall(r"(CONVCORE_\w+)\s*(?:[,=]|$)", constants.strip())
        lines += [f"    enum: {declared(constant)}" for constant in names]
        if fields:
            lines.append(f"    ctypedef struct {declared(name)}:")
            lines += [f"        {line}" for line in cython_fields(fields)]
        if function:
            lines.append(f"    ctypedef {cython_declaration(function)}")
    return "\n".join(lines) + "\n"


def cython_fields(fields):
    """Yield a Cython declaration of each field of a C struct."""
    for field in map(str.strip, fields.split(";")):
        if "(" in field:
            yield cython_declaration(field)
        elif field:
            first, *others = field.split(",")
            base, name = re.fullmatch(r"(.*?)\s*(\**\w+(?:\[.*\])?)", first).groups()
            # One at a time: Cython refuses several pointers in a declaration.
            for declarator in (name, *others):
                yield cython_declaration(f"{base} {declarator.strip()}")


def cython_declaration(text):
    """Translate a C declaration: its types, its array sizes, and that functions hold no GIL."""
    text = " ".join(text.split()).replace("ptrdiff_t", "Py_ssize_t")
    text = re.sub(r"\(\*(convcore_\w+)\)", lambda name: f"(*{declared(name[1])})", text)
    text = re.sub(r"(?<![\"\w])(?:convcore|CONVCORE)_\w+", lambda name: short_name(name[0]), text)
    return f"{text} noexcept nogil" if "(" in text else text


def declared(name):
    return f'{short_name(name)} "{name}"'


def short_name(name):
    if name.isupper():
        return name.removeprefix("CONVCORE_")
    return "".join(map(str.capitalize, name.split("_")[1:]))


class BuildKernels(build_ext):
    """build_ext that works in parallel, probes OpenMP and leaves the source tree clean.

    Modules are made in one folder for all purposes: what was built in place is in the next wheel,
    and an editable install, which builds in a folder that it throws away, finds it too.
    """

    def finalize_options(self):
        super().finalize_options()
        self.parallel = self.parallel or cpus()
        self.build_temp = f"{BUILD}/temp"

    def run(self):
        if self.force:
            shutil.rmtree(f"{BUILD}/stamps", ignore_errors=True)
        start = time.monotonic()
        self.translate()
        asked, self.build_lib = self.build_lib, f"{BUILD}/lib"
        super().run()
        made = [self.get_ext_filename(extension.name) for extension in self.extensions]
        self.build_lib = asked
        if not self.inplace:
            for name in made:
                self.mkpath(os.path.dirname(f"{asked}/{name}"))
                self.copy_file(f"{BUILD}/lib/{name}", f"{asked}/{name}")
        print(f"convcore: kernels are there after {time.monotonic() - start:.0f} s")

    def translate(self):
        """Have Cython write C, under the build directory, for what has changed."""
        import Cython
        from Cython.Build import cythonize
        from Cython.Build.Dependencies import create_dependency_tree

        view = "from libc.stdint cimport uint8_t\n\n" + "\n".join(
            map(cython_view, DECLARED_HEADERS)
        )
        if not CYTHON_VIEW.exists() or CYTHON_VIEW.read_text("utf-8") != view:
            CYTHON_VIEW.write_text(view, "utf-8")
        tree = create_dependency_tree(quiet=True)
        stale, digests = [], {}
        for extension in self.extensions:
            (source,) = extension.sources
            target = Path(BUILD, "c", source).with_suffix(".c")
            declarations = sorted(map(Path, tree.all_dependencies(source)))
            made_from = digest(declarations, Cython.__version__, DIRECTIVES)
            if not is_made(target, made_from):
                stale.append(extension)
                digests[target] = made_from
        if stale:
            cythonize(
                stale,
                build_dir=f"{BUILD}/c",
                compiler_directives=DIRECTIVES,
                nthreads=self.parallel,
                force=True,
            )
        for target, made_from in digests.items():
            mark_made(target, made_from)
        for extension in self.extensions:
            extension.sources = [f"{BUILD}/c/{Path(extension.sources[0]).with_suffix('.c')}"]

    def build_extensions(self):
        compiler = self.compiler
        for name in ("linker_so", "linker_so_cxx", "linker_exe"):
            if getattr(compiler, name, None):
                setattr(compiler, name, without_absolute_rpath(getattr(compiler, name)))
        openmp_compile, openmp_link = openmp_flags(compiler)
        for extension in self.extensions:
            flags = compile_flags(compiler.compiler_type) + openmp_compile
            if compiler.compiler_type == "unix" and not DEBUG and is_small(extension.name):
                flags = [*flags, "-Os"]
            extension.extra_compile_args = flags
            extension.extra_link_args = link_flags(compiler.compiler_type) + openmp_link
        self.check_extensions_list(self.extensions)
        (isa,) = (one for one in self.extensions if one.name.endswith("._isa"))
        with ThreadPoolExecutor(self.parallel) as pool:
            microkernels = self.compile_microkernels(isa, pool)
            others = [
                pool.submit(self.build_extension, one) for one in self.extensions if one is not isa
            ]
            isa.extra_objects = [job.result() for job in microkernels]
            for job in others:
                job.result()
        self.build_extension(isa)

    def build_extension(self, extension):
        target = Path(self.get_ext_fullpath(extension.name))
        made_from = digest(
            [*with_headers(extension.sources), *map(Path, extension.extra_objects)],
            getattr(self.compiler, "compiler_so", None),
            getattr(self.compiler, "linker_so", None),
            extension.define_macros,
            extension.extra_compile_args,
            extension.extra_link_args,
        )
        if not is_made(target, made_from):
            super().build_extension(extension)
            mark_made(target, made_from)

    def compile_microkernels(self, extension, pool):
        """Have the microkernels compiled once an instruction set; tell _isa.pyx of these.

        Returns the jobs, each of which results in the name of an object file.
        """
        sets = instruction_sets(self.compiler)
        found = [(f"CONVCORE_HAS_{isa.upper()}", None) for isa in sets]
        extension.define_macros = extension.define_macros + found

        def compile_one(job):
            source, isa = job
            options = {
                "macros": [("CONVCORE_ISA", isa)],
                "include_dirs": [str(ENGINE)],
                "extra_postargs": compile_flags(self.compiler.compiler_type) + sets[isa],
            }
            folder = f"{self.build_temp}/{isa}"
            (name,) = self.compiler.object_filenames([str(source)], output_dir=folder)
            target = Path(name)
            command = getattr(self.compiler, "compiler_so", None)
            made_from = digest(with_headers([source]), command, options)
            if not is_made(target, made_from):
                print(f"compiling {source} for {isa}")
                self.compiler.compile([str(source)], folder, **options)
                mark_made(target, made_from)
            return name

        # The longest first, the modules after them: on two cores neither then waits for the other.
        # Widest vectors take longest, 50 s of the convolutions' microkernels for AVX-512.
        jobs = [
            (source, isa)
            for isa, source in product(reversed(sets), MICROKERNELS)
            if isa not in (PAIRS, TILES) or source.stem == "bfloat16"
        ]
        return [pool.submit(compile_one, job) for job in jobs]

    def copy_extensions_to_source(self):
        # A module of another kind of build may be newer than ours, or come first on import.
        for pattern in ("*.so", "*.pyd"):
            for built in ENGINE.rglob(pattern):
                built.unlink()
        super().copy_extensions_to_source()


class BuildPython(build_py):
    """build_py that first writes the type stub of Tensor, which is data of the package."""

    def run(self):
        subprocess.run([sys.executable, "-B", "wheels/tensor_stub.py"], check=True)
        vars(self).pop("data_files", None)  # listed anew, with the stub
        super().run()


def kernel(source):
    """Describe the extension module that a .pyx file becomes."""
    macros = [("Py_LIMITED_API", "0x030B0000")] if LIMITED_API else []
    if source.stem == "_gemm":
        macros.append(("CONVCORE_BLAS_INT", scipy_blas_int()))
    return Extension(
        ".".join(source.with_suffix("").parts),
        [source.as_posix()],
        define_macros=macros,
        include_dirs=[ENGINE.as_posix()],
        py_limited_api=LIMITED_API,
    )


# Cython's worker processes import this file again where they are not forked.
if __name__ == "__main__":
    setup(
        ext_modules=[kernel(source) for source in sorted(ENGINE.rglob("*.pyx"))],
        cmdclass={"build_ext": BuildKernels, "build_py": BuildPython},
        options={
            "build": {"build_base": BUILD},
            "bdist_wheel": {"py_limited_api": "cp311"} if LIMITED_API else {},
        },
    )
