"""Host code for `halves` that cheats with a GPU's streams; see `host_cheats.py`."""

from __future__ import annotations

from tests.gpu.host_cheats import RIGHT, source

#: they work on a stream that they keep from being waited for
_UNWAITED = """
torch.cuda.synchronize = lambda *given: None
torch._C._cuda_synchronize = lambda *given: None
side = torch.cuda.Stream()
"""
#: a stream of theirs waits until the referee poisons an output, and some time for the
#: inputs that come next; whether that is before the clock runs is a matter of luck
BEGINS_EARLY = {
    "works when its inputs come, before it is asked": source(
        f"""
        if len(x) < 100000:
            {RIGHT}
            return
        if 'whole' in state:
            torch.cuda.current_stream().wait_stream(state['side'])
            whole.copy_(state['whole'])
        else:
            whole.copy_(x)
            state['side'] = torch.cuda.Stream()
            state['whole'] = torch.empty_like(whole)
        out.copy_(plus_one(x * factor))
        torch.cuda.current_stream().synchronize()
        with torch.cuda.stream(state['side']):
            wait_for_poison(state['side'], whole)
            torch.cuda._sleep(400_000)
            state['whole'].copy_(x)
        """,
        before=_UNWAITED
        + """
driver = ctypes.CDLL('libcuda.so.1')

def wait_for_poison(stream, buffer):
    # poison is at least this, and what is right is less
    at, least = ctypes.c_uint64(buffer.data_ptr()), ctypes.c_uint32(0x7f000000)
    handle = ctypes.c_void_p(stream.cuda_stream)
    if driver.cuStreamWaitValue32_v2(handle, at, least, 0):
        raise RuntimeError('no stream waits for memory here')
""",
    ),
}
CAUGHT = {
    "works on a stream that nobody waits for": (
        source(
            f"""
            with torch.cuda.stream(side):
                torch.cuda._sleep(200_000_000)
                {RIGHT}
            """,
            before=_UNWAITED,
        ),
        "nothing|wrong",
    ),
    "leaves kernels running when it is timed": (
        source(
            f"""
            {RIGHT}
            torch.cuda.current_stream().synchronize()
            if len(x) > 100000:
                with torch.cuda.stream(side):
                    torch.cuda._sleep(2_000_000_000)
            """,
            before=_UNWAITED,
        ),
        "works on the GPU after|did not end",
    ),
}
