"""Host code for `halves` that cheats with a GPU's streams; see `host_cheats.py`."""

from __future__ import annotations

from tests.gpu.host_cheats import RIGHT, source

#: they work on a stream that they keep from being waited for
_UNWAITED = """
torch.cuda.synchronize = lambda *given: None
torch._C._cuda_synchronize = lambda *given: None
side = torch.cuda.Stream()
"""
CAUGHT = {
    "has a kernel running from before the first unit": (
        source(
            RIGHT,
            before=_UNWAITED,
            prepare="""
            with torch.cuda.stream(side):
                torch.cuda._sleep(20_000_000_000 if n > 100000 else 1)
            """,
        ),
        "works on the GPU after|did not end",
    ),
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

#: It is right, and gains nothing by what it could have from before the clock runs: a
#: stream of its own waits until the referee poisons an output, gives the inputs some
#: time to come, and copies them. After some units it tells how often the copy had been
#: made when it was asked, and how often what was copied was right all the same.
BEGINS_EARLY = source(
    f"""
    if len(x) < 100000:
        {RIGHT}
        return
    if state['waits']:
        tried[0] += 1
        if state['copied'].query():
            tried[1] += 1
            tried[2] += bool((state['early'] == x.cuda()).all())
        if tried[0] == 20:
            raise ValueError('of %d tries %d were early, %d of them right' % (*tried,))
    {RIGHT}
    called.append((state, x, out, int(out.argmax())))
    if len(called) < 2:
        return
    # both sets of this unit: nothing else is asked of the GPU while streams wait
    for state, x, out, largest in called:
        state['waits'] = True
        with torch.cuda.stream(state['side']):
            wait_for_poison(state['side'], out[largest:])
            torch.cuda._sleep(100_000 * (1 + tried[0]))
            state['early'].copy_(x, non_blocking=True)
            state['copied'].record()
    called.clear()
    """,
    before=_UNWAITED
    + """
driver = ctypes.CDLL('libcuda.so.1')
tried, called = [0, 0, 0], []
# a kernel that is loaded while a stream waits would wait for it
torch.cuda._sleep(1)
(torch.zeros(9).cuda() == torch.zeros(9, device='cuda')).all()

def wait_for_poison(stream, buffer):
    # poison is at least this; the largest that is right is positive and less
    at, least = ctypes.c_uint64(buffer.data_ptr()), ctypes.c_uint32(0x7f000000)
    handle = ctypes.c_void_p(stream.cuda_stream)
    if driver.cuStreamWaitValue32_v2(handle, at, least, 0):
        raise RuntimeError('no stream waits for memory here')
""",
    prepare="""
    side, copied = torch.cuda.Stream(), torch.cuda.Event()
    early = torch.empty(n, device='cuda')
    return {'side': side, 'copied': copied, 'early': early, 'waits': False}
    """,
)
