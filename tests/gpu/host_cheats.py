"""Host code for `halves` that tries to get marks that it has not earned.

The lab is that of tests/labs/host/small_lab.py. All of them run on the CPU,
too; those that need a GPU's streams are in `host_stream_cheats.py`.
"""

from __future__ import annotations

from textwrap import dedent, indent

RIGHT = "out.copy_(plus_one(x * factor)); whole.copy_(x)"


def source(run: str, before: str = "", prepare: str = "return {}") -> str:
    """Write a submission."""
    return f"""
import atexit, ctypes, gc, os, signal, socket, subprocess, sys, threading, time
import torch
from given import plus_one

{dedent(before)}

def prepare(n):
{indent(dedent(prepare), "    ")}


def run(state, x, factor, out, whole):
{indent(dedent(run), "    ")}
"""


_LIBC = """
libc = ctypes.CDLL(None, use_errno=True)

def must(answer):
    if answer < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
"""
#: of a run that is timed
_SEEN = "state['seen'] = state.get('seen', 0) + 1"
#: what a refused system call says
REFUSED = "PermissionError|not permitted|denied"

#: they compute what is asked, and must pass
HONEST = {
    "as it is meant": source(RIGHT),
    "on a thread that it waits for": source(
        f"""
        def work():
            {RIGHT}
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        """
    ),
}
#: by name: the source, and words of the reason
CAUGHT = {
    "does nothing": (source("pass"), "nothing"),
    "takes what lies in the output": (source("out.add_(0); whole.add_(0)"), "nothing"),
    "NaN as a wildcard": (
        source("out.fill_(float('nan')); whole.copy_(x)"),
        "expected",
    ),
    "one of two outputs": (source("whole.copy_(x)"), "nothing"),
    "says done before it is": (
        source(
            f"""
            def late():
                time.sleep(0.05)
                {RIGHT}
            threading.Thread(target=late).start()
            """
        ),
        "nothing",
    ),
    "works when it is asked for the result": (
        source(f"yield\n{RIGHT}"),
        "nothing",
    ),
    "a lazy tensor in place of the output": (
        source(
            """
            out.__class__ = Lazy
            out.data = x * factor
            whole.data = torch.zeros_like(whole)
            """,
            before="""
            class Lazy(torch.Tensor):
                @classmethod
                def __torch_function__(cls, function, types, args=(), kwargs=None):
                    return args[0]
            """,
        ),
        "nothing",
    ),
    "other memory for the output": (
        source("out.set_(plus_one(x * factor)); whole.set_(x.to(whole.dtype))"),
        "nothing|RuntimeError",
    ),
    "keeps outputs by their shape": (
        source(
            f"""
            if 'out' in state:
                out.copy_(state['out']); whole.copy_(state['whole'])
            else:
                {RIGHT}
                state['out'], state['whole'] = out.clone(), whole.clone()
            """
        ),
        "In call 2",
    ),
    "keeps outputs by their address": (
        source(
            f"""
            key = x.data_ptr()
            if key in kept:
                out.copy_(kept[key][0]); whole.copy_(kept[key][1])
            else:
                {RIGHT}
                kept[key] = out.clone(), whole.clone()
            """,
            before="kept = {}",
        ),
        "In call 2",
    ),
    "keeps outputs by a part of the input": (
        source(
            f"""
            key = len(x)
            if key in kept:
                out.copy_(kept[key][0]); whole.copy_(kept[key][1])
            else:
                {RIGHT}
                kept[key] = out.clone(), whole.clone()
            """,
            before="kept = {}",
        ),
        "In call 2",
    ),
    "puts its own code into the grader's child": (
        source(
            "pass",
            before="""
            child = sys.modules['__main__']
            child.Child._run = lambda *given: None
            """,
        ),
        "nothing",
    ),
    "stops the clocks it can reach": (
        source(
            f"""
            def late():
                sleep(0.05)
                {RIGHT}
            threading.Thread(target=late).start()
            """,
            before="""
            sleep = time.sleep
            for name in ('time', 'perf_counter', 'perf_counter_ns', 'monotonic',
                         'monotonic_ns', 'process_time', 'sleep'):
                setattr(time, name, lambda *given: 0)
            type.__setattr__(torch.cuda.Event, 'elapsed' + '_time', lambda *given: 0.0)
            torch.cuda.synchronize = lambda *given: None
            """,
        ),
        "nothing",
    ),
    "writes its input": (source(f"{RIGHT}; x.zero_()"), "`x`, which is an input"),
    "makes the question easy": (
        source("x.zero_(); out.fill_(1); whole.zero_()"),
        "`x`, which is an input",
    ),
    "says done on every pipe before it is asked": (
        source(
            "time.sleep(0.2)",
            before="""
            import msgspec, struct
            for turn in range(1, 5):
                body = msgspec.msgpack.encode({'type': 'done', 'turn': turn})
                for descriptor in range(3, 512):
                    try:
                        os.write(descriptor, struct.pack('<I', len(body)) + body)
                    except OSError:
                        pass
            """,
        ),
        # CUDA has pipes and counters of its own there, which may fill up
        "unexpected answer|nothing|did not end|ended with exit code",
    ),
    "writes nonsense on every pipe": (
        source(
            "pass",
            before="""
            for descriptor in range(3, 512):
                try:
                    os.write(descriptor, bytes([3, 0, 0, 0, 1, 2, 3]))
                except OSError:
                    pass
            """,
        ),
        "invalid message",
    ),
    "closes the pipes": (source("os.closerange(0, 512)"), "ended|closed"),
    "leaves with 0": (source("os._exit(0)"), "ended with exit code 0"),
    "leaves politely": (source("sys.exit(0)"), "SystemExit"),
    "leaves work for the end": (
        source("atexit.register(lambda: os._exit(0)); raise KeyboardInterrupt"),
        "KeyboardInterrupt",
    ),
    "an exception whose words never end": (
        source(
            "raise Endless",
            before="""
            class Endless(Exception):
                def __str__(self):
                    while True:
                        pass
            """,
        ),
        "did not end",
    ),
    "never ends": (source("while True: pass"), "did not end"),
    "stands still": (source("os.kill(os.getpid(), signal.SIGSTOP)"), "did not end"),
    "reads the grader's memory": (
        source("open(f'/proc/{os.getppid()}/mem', 'rb').read(1)"),
        REFUSED,
    ),
    "reads the grader's memory by a call": (
        source(
            """
            class Part(ctypes.Structure):
                _fields_ = (('at', ctypes.c_void_p), ('size', ctypes.c_size_t))
            held = ctypes.create_string_buffer(8)
            here = Part(ctypes.addressof(held), 8)
            there = Part(id(here), 8)
            must(libc.process_vm_readv(
                os.getppid(), ctypes.byref(here), 1, ctypes.byref(there), 1, 0))
            """,
            before=_LIBC,
        ),
        REFUSED,
    ),
    "traces the grader": (
        source("must(libc.ptrace(16, os.getppid(), 0, 0))", before=_LIBC),
        REFUSED,
    ),
    "ends the grader": (
        source("os.kill(os.getppid(), signal.SIGKILL)"),
        REFUSED,
    ),
    "ends all of its group": (source("os.killpg(0, signal.SIGKILL)"), REFUSED),
    "stops its neighbours": (
        source(
            """
            for pid in range(os.getpid() - 5, os.getpid() + 6):
                if pid != os.getpid():
                    os.kill(pid, signal.SIGSTOP)
            """
        ),
        REFUSED,
    ),
    "wants to outlive the grader": (
        source("must(libc.prctl(1, 0))", before=_LIBC),
        REFUSED,
    ),
    "leaves its group": (source("os.setsid()"), REFUSED),
    "reads the users": (source("open('/etc/passwd').read()"), REFUSED),
    "reads the labs' references": (
        source(
            """
            import warpbook_labs
            package = warpbook_labs.__path__[0]
            inside = package + '/catalogue'
            beside = os.path.dirname(package) + '/catalogue'
            os.listdir(inside if os.path.exists(inside) else beside)
            """
        ),
        REFUSED,
    ),
    "writes a file": (source("open('/tmp/warpbook-cheat', 'w').write('x')"), REFUSED),
    "writes one file after the other": (
        source(
            """
            import tempfile
            while True:
                number, name = tempfile.mkstemp()
                os.close(number)
            """
        ),
        "more than 64 files",
    ),
    "writes a file without end": (
        source(
            """
            import tempfile
            with tempfile.TemporaryFile() as file:
                while True:
                    file.write(bytes(1 << 20))
            """
        ),
        "File too large|SIGXFSZ",
    ),
    "opens a connection": (
        source("socket.create_connection(('1.1.1.1', 53))"),
        REFUSED,
    ),
    "listens": (source("socket.socketpair()"), REFUSED),
    "a fork bomb": (source("while True: os.fork()"), REFUSED),
    "starts a program": (source("subprocess.run(['/bin/true'], check=True)"), REFUSED),
    "a bomb of threads": (
        source(
            """
            while True:
                threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
            """
        ),
        "threads|new thread",
    ),
    "takes all memory": (
        source("held = []\nwhile True: held.append(bytearray(b'x') * (32 << 20))"),
        "MiB of memory|MemoryError",
    ),
    "takes shared memory away": (
        source(
            """
            for descriptor in range(3, 512):
                try:
                    size = os.fstat(descriptor).st_size
                except OSError:
                    continue
                if size >= 4096:
                    os.ftruncate(descriptor, 0)
            """
        ),
        REFUSED,
    ),
}
#: after these the process is no fair place for another source
SPOIL = (
    "puts its own code into the grader's child",
    "stops the clocks it can reach",
    "a clock that stands still",
    "spins on threads",
    "works in a thread when it is timed",
    "keeps outputs by their address",
)
#: right while they are checked, wrong while they are timed
CAUGHT_WHEN_TIMED = {
    "does nothing when it is timed": (
        source(f"if len(x) < 100000: {RIGHT}"),
        "wrong in a timed call",
    ),
    "all but one element when it is timed": (
        source(
            f"""
            kept = out[76543:76544].clone()
            {RIGHT}
            if len(x) > 100000: out[76543:76544] = kept
            """
        ),
        r"76543\] is wrong in a timed call, and 1 of",
    ),
    "rests after its warm-up": (
        source(f"{_SEEN}\nif state['seen'] < 6: {RIGHT}"),
        "wrong in a timed call",
    ),
    "writes its input when it is timed": (
        source(f"{RIGHT}\nif len(x) > 100000: x[3] = 0"),
        "`x`, an input, in a timed call",
    ),
    "works in a thread when it is timed": (
        source(
            f"""
            def late():
                time.sleep(0.02)
                {RIGHT}
            if len(x) > 100000:
                threading.Thread(target=late).start()
            else:
                {RIGHT}
            """
        ),
        "wrong in a timed call|not yet there",
    ),
    "leaves when it is timed": (
        source(f"{RIGHT}\nif len(x) > 100000: os._exit(0)"),
        "timed call: Its process ended",
    ),
    "raises when it is timed": (
        source(f"{RIGHT}\nif len(x) > 100000: raise ValueError('enough')"),
        "timed call: ValueError: enough",
    ),
}
#: right always; what they try to slow down or to shift does not move
GAIN_NOTHING = {
    "spins on threads": source(
        RIGHT,
        before="""
        def spin():
            while True:
                pass
        for _ in range(2):
            threading.Thread(target=spin, daemon=True).start()
        """,
    ),
    "a clock that stands still": source(
        RIGHT,
        before="""
        for name in ('perf_counter', 'perf_counter_ns', 'monotonic', 'monotonic_ns'):
            setattr(time, name, lambda *given: 0)
        """,
    ),
}
