"""XID errors: what the driver's numbers mean, how bad they are, and what to do.

In our own words, after NVIDIA's "Xid Errors" (its catalogue for Ampere and newer,
and the list for older GPUs) and "GPU Debug Guidelines".
"""

from __future__ import annotations

from typing import NamedTuple

from warpbook_monitors.frames import Severity


class Xid(NamedTuple):
    """One number of the list."""

    severity: Severity
    title: str
    meaning: str
    remedy: str
    #: whatever NVML still answers is no reading of the GPU
    loses_gpu: bool = False


_SANITIZE = (
    "Restart the kernel. Find the access with compute-sanitizer, or run again with "
    "CUDA_LAUNCH_BLOCKING=1 to see which call it is."
)
_RESTART = "Restart the kernel; if it comes back, tell the administrator."
_RESET = (
    "Save your work: the GPU must be reset (nvidia-smi --gpu-reset) or the machine "
    "rebooted; if it comes back, the GPU needs service."
)
_WATCH = "Nothing to do now; if it happens often, tell the administrator."
_NVLINK = (
    "See `nvidia-smi nvlink -e` and the GPU at the other end; reset both GPUs or "
    "reboot. If it comes back, the link needs service."
)
_GSP = (
    "Reset the GPU or power the machine off and on; if it comes back, update the "
    "driver and tell the administrator."
)

_COPY_ENGINES = (39, 40, 41, 70, 71, 72, 75, 76, 77, 85, *range(126, 136))
_VIDEO = (60, 68, 82, 83, 84, 86, 88, 89, *range(96, 106), 139)
_NVLINK_5 = range(144, 151)

_XIDS: dict[int, Xid] = {
    8: Xid(
        "fault",
        "The GPU stopped responding to a program",
        "A program's work did not end in the time that the driver allows.",
        _RESTART,
    ),
    13: Xid(
        "warning",
        "A kernel did an illegal operation",
        "Mostly an index out of bounds or an illegal instruction in a CUDA kernel; "
        "the program that ran it can no longer use the GPU. Rarely a hardware fault.",
        _SANITIZE,
    ),
    31: Xid(
        "warning",
        "A kernel accessed an invalid address",
        "A page fault on the GPU: usually a bad pointer or index in a program, which "
        "can no longer use the GPU. Rarely the driver or the hardware.",
        _SANITIZE,
    ),
    32: Xid(
        "fault",
        "Commands to the GPU arrived corrupted",
        "The unit that fetches commands over PCIe had an error: usually a bad PCIe "
        "connection, rarely the program.",
        "Restart the kernel. If it comes back, have the GPU's seating, riser and "
        "cables checked.",
    ),
    38: Xid(
        "warning",
        "The GPU's firmware had an error",
        "A watchdog timer expired in the firmware that switches between programs.",
        _WATCH,
    ),
    43: Xid(
        "warning",
        "A program was stopped after its own fault",
        "The program made an error and must end; the GPU itself is fine.",
        "Restart the kernel, and look for the first CUDA error of that program.",
    ),
    45: Xid(
        "normal",
        "A program's work was cleared off the GPU",
        "It follows when a program is killed or interrupted, or after another error: "
        "look at the XID before it.",
        "Nothing, if somebody ended the program or restarted a kernel.",
    ),
    46: Xid(
        "fault",
        "The GPU stopped answering",
        "The GPU made no progress with its work.",
        _RESET,
    ),
    48: Xid(
        "fault",
        "Memory error that could not be corrected",
        "Two bits or more were wrong at once; results since then may be wrong, and "
        "the programs concerned were stopped.",
        _RESET,
    ),
    54: Xid(
        "fault",
        "No auxiliary power",
        "The power cable of the GPU's board is not connected.",
        "Switch the machine off and connect it.",
    ),
    61: Xid(
        "fault",
        "The GPU's power controller stopped at a breakpoint",
        "A microcontroller inside the GPU had an error (older drivers).",
        _RESET,
    ),
    62: Xid(
        "fault",
        "The GPU's power controller halted",
        "A microcontroller inside the GPU stopped.",
        _RESET,
    ),
    63: Xid(
        "warning",
        "A faulty part of memory was retired",
        "A row was marked to be replaced by a spare one (before Ampere: a page to be "
        "retired). It takes effect with the next reset; until then work may go on.",
        "Reset the GPU when nobody uses it.",
    ),
    64: Xid(
        "fault",
        "A faulty part of memory could not be retired",
        "Recording the row or page failed, or there are no spare rows left.",
        _RESET,
    ),
    69: Xid(
        "warning",
        "A program sent the GPU a wrong command",
        "The graphics and compute engine rejected it: usually the program, or "
        "incompatible libraries and driver.",
        _RESTART,
    ),
    74: Xid(
        "fault",
        "NVLink error",
        "A link to another GPU or to a switch failed; the cause may lie at the other "
        "end.",
        _NVLINK,
    ),
    78: Xid(
        "fault",
        "A virtual GPU did not start",
        "The software of host and guest is incompatible.",
        "Update the vGPU software on both sides.",
    ),
    79: Xid(
        "fault",
        "The GPU has fallen off the bus",
        "The driver can no longer reach the GPU over PCIe: power, heat, its seating, "
        "or the GPU itself.",
        "Save what is left: the machine must be rebooted. Look at the system's log "
        "for PCIe errors, check power and cooling; if it comes back, the GPU needs "
        "service.",
        loses_gpu=True,
    ),
    80: Xid(
        "warning",
        "Commands to the GPU arrived with a wrong checksum",
        "Data that a program sent over PCIe was corrupted on the way.",
        _RESTART,
    ),
    92: Xid(
        "warning",
        "Many memory errors, all corrected",
        "ECC corrects more single-bit errors than usual; results are correct.",
        "Tell the administrator: the memory may be about to fail.",
    ),
    94: Xid(
        "warning",
        "Memory error that hit one program",
        "An error could not be corrected, but was contained in one program; all "
        "others are unaffected.",
        "Restart that program's kernel, and reset the GPU when nobody uses it.",
    ),
    95: Xid(
        "fault",
        "Memory error that hit several programs",
        "An error could neither be corrected nor contained in one program: no result "
        "on this GPU can be trusted.",
        _RESET,
    ),
    109: Xid(
        "fault",
        "Switching between programs took too long",
        "The GPU did not stop one program's work in time to start another's.",
        _RESET,
    ),
    110: Xid(
        "fault",
        "Security fault",
        "Uncommon unless hardware fails, or was changed lately.",
        "Undo changes of the hardware and power the machine off and on; if it comes "
        "back, the GPU needs service.",
    ),
    119: Xid(
        "fault",
        "The GPU's system processor does not answer",
        "The driver timed out waiting for the GPU's firmware (GSP).",
        _GSP,
    ),
    120: Xid(
        "fault",
        "The GPU's system processor had an error",
        "The firmware (GSP) on the GPU failed.",
        _GSP,
    ),
    121: Xid(
        "warning",
        "Errors on the link to the CPU, all corrected",
        "The chip-to-chip link of GPU and Grace CPU corrects errors; nothing is lost.",
        "Reset the GPU when nobody uses it, so that the link is retrained.",
    ),
    122: Xid(
        "warning",
        "The GPU's flash memory could not be read",
        "Reading from the board's flash failed.",
        "Tell the administrator if it comes back.",
    ),
    123: Xid(
        "warning",
        "The GPU's flash memory could not be written",
        "Writing to the board's flash failed.",
        "Tell the administrator if it comes back.",
    ),
    136: Xid(
        "fault",
        "An NVLink could not be trained",
        "A link to another GPU or to a switch did not come up.",
        _NVLINK,
    ),
    137: Xid(
        "warning",
        "An illegal access to another GPU",
        "A program used an address on another GPU, over NVLink, that it may not use.",
        _SANITIZE,
    ),
    140: Xid(
        "fault",
        "Memory error that could not be recovered",
        "ECC found errors, and the driver could not retire the faulty part.",
        _RESET,
    ),
    143: Xid(
        "fault",
        "The GPU did not start",
        "An error while the GPU was initialized.",
        _RESET,
    ),
    154: Xid(
        "warning",
        "The GPU asks for another recovery than before",
        "It comes with another XID and states what is needed: nothing, a reset or a "
        "reboot.",
        "See “GPU Recovery Action” in `nvidia-smi -q`, and the XID before it.",
    ),
    156: Xid(
        "warning",
        "A faulty part of the GPU was retired",
        "It takes effect with the next reset.",
        "Reset the GPU when nobody uses it.",
    ),
    157: Xid(
        "warning",
        "A faulty part of the GPU could not be retired",
        "There is no spare for it; the same error may come again.",
        "Tell the administrator; the GPU may need service.",
    ),
    158: Xid("fault", "The GPU stopped answering", "A timeout in the GPU.", _RESET),
    171: Xid(
        "fault",
        "Memory error in DRAM that could not be corrected",
        "More about the XID 48 that comes with it.",
        _RESET,
    ),
    172: Xid(
        "fault",
        "Memory error inside the chip that could not be corrected",
        "More about the XID 48 that comes with it.",
        _RESET,
    ),
    **dict.fromkeys(
        _COPY_ENGINES,
        Xid(
            "warning",
            "A copy engine had an error",
            "A copy to, from or on the GPU failed; the program concerned was stopped.",
            _RESTART,
        ),
    ),
    **dict.fromkeys(
        _VIDEO,
        Xid(
            "warning",
            "A video or image engine had an error",
            "Decoding or encoding failed; the program concerned was stopped. Often a "
            "damaged input.",
            _RESTART,
        ),
    ),
    **dict.fromkeys(
        _NVLINK_5,
        Xid(
            "fault",
            "NVLink error",
            "A part of the links between the GPUs reports an error; it may have been "
            "corrected.",
            _NVLINK,
        ),
    ),
}


def explain(number: int) -> Xid:
    """Say what an XID means; one that is not in the list is told as such."""
    known = _XIDS.get(number)
    if known is not None:
        return known
    return Xid(
        "warning",
        "An error unknown to warpbook",
        f"The driver reported XID {number}, which is not in warpbook's list.",
        "Look the number up in NVIDIA's “Xid Errors”, and look for “Xid” in the "
        "kernel log (dmesg).",
    )
