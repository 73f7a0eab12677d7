"""What the errors of the CUDA driver mean in a program that launches kernels; source: the driver API's manual."""

from __future__ import annotations

__all__ = ["EXPLANATIONS", "LOST"]

EXPLANATIONS = {
    "INVALID_VALUE": "an argument of the call is out of range",
    "OUT_OF_MEMORY": "the GPU has not enough free memory; other processes and frameworks' pools count too",
    "NOT_INITIALIZED": "the driver was not started in this process",
    "DEINITIALIZED": "the driver is shutting down; the process is about to end",
    "STUB_LIBRARY": "the libcuda found is the toolkit's stub, not the driver; take its folder out of LD_LIBRARY_PATH",
    "DEVICE_UNAVAILABLE": "another process holds the GPU exclusively",
    "NO_DEVICE": "the driver sees no GPU; CUDA_VISIBLE_DEVICES may hide it",
    "INVALID_DEVICE": "there is no GPU of that number",
    "INVALID_IMAGE": "the machine code is damaged or for another kind of GPU",
    "INVALID_CONTEXT": "no context of this GPU is current in this thread",
    "ECC_UNCORRECTABLE": "the GPU's memory failed; the machine needs attention",
    "UNSUPPORTED_LIMIT": "the GPU does not have that limit",
    "INVALID_PTX": "the driver's compiler refuses the PTX",
    "UNSUPPORTED_PTX_VERSION": "the driver is older than the PTX's .version; install ptxas, whose code it loads",
    "JIT_COMPILER_NOT_FOUND": "the driver's compiler is not installed; install ptxas",
    "JIT_COMPILATION_DISABLED": "compiling in the driver is switched off; install ptxas",
    "NO_BINARY_FOR_GPU": "the machine code is not for this GPU",
    "INVALID_SOURCE": "the PTX cannot be read",
    "SHARED_OBJECT_INIT_FAILED": "the driver could not load a part of itself",
    "OPERATING_SYSTEM": "the operating system refused a request of the driver",
    "INVALID_HANDLE": "a stream, event or function is not of this context, or was destroyed",
    "NOT_FOUND": "the module has no function or variable of that name",
    "NOT_READY": "the work is not done yet",
    "ILLEGAL_ADDRESS": "a thread read or wrote where nothing is; the context is lost and the process must be restarted",
    "LAUNCH_OUT_OF_RESOURCES": "the block needs more registers or shared memory than there are",
    "LAUNCH_TIMEOUT": "the kernel ran longer than a GPU with a display allows",
    "PRIMARY_CONTEXT_ACTIVE": "the primary context is already in use with other flags",
    "CONTEXT_IS_DESTROYED": "the context of this thread was destroyed",
    "ASSERT": "a check in the kernel failed; the context is lost",
    "PEER_ACCESS_NOT_ENABLED": "the memory is on another GPU, to which there is no access",
    "HARDWARE_STACK_ERROR": (
        "the call stack overflowed, which `configure(stack=...)` makes larger, or was damaged; the context is lost"
    ),
    "ILLEGAL_INSTRUCTION": "a thread executed an illegal instruction, or a trap; the context is lost",
    "MISALIGNED_ADDRESS": "a thread accessed an address that is no multiple of the access's size; the context is lost",
    "INVALID_ADDRESS_SPACE": "an instruction was given an address of another state space; the context is lost",
    "INVALID_PC": "the program counter left the program; the context is lost",
    "LAUNCH_FAILED": "the kernel failed while it ran; the context is lost",
    "COOPERATIVE_LAUNCH_TOO_LARGE": "a cooperative launch has more blocks than the GPU can run at once",
    "NOT_PERMITTED": "the operation is not allowed, perhaps on a stream under capture",
    "NOT_SUPPORTED": "this GPU or this driver cannot do that",
    "SYSTEM_DRIVER_MISMATCH": "the driver in the kernel and libcuda have different versions; restart the machine",
    "COMPAT_NOT_SUPPORTED_ON_DEVICE": "the compatibility package does not support this GPU",
    "STREAM_CAPTURE_UNSUPPORTED": "the operation is not allowed on a stream under capture",
    "STREAM_CAPTURE_INVALIDATED": "an earlier error ended the capture of this stream",
    "CLUSTER_OUT_OF_RESOURCES": "the GPU cannot place a cluster of this size",
    "INVALID_CLUSTER_SIZE": "the GPU cannot have clusters of this size",
    "UNKNOWN": "the driver does not know what happened",
}
"""By the driver's name for it, without ``CUDA_ERROR_``."""

LOST = (
    "ECC_UNCORRECTABLE", "ILLEGAL_ADDRESS", "LAUNCH_TIMEOUT", "CONTEXT_IS_DESTROYED", "ASSERT", "HARDWARE_STACK_ERROR",
    "ILLEGAL_INSTRUCTION", "MISALIGNED_ADDRESS", "INVALID_ADDRESS_SPACE", "INVALID_PC", "LAUNCH_FAILED",
    "NVLINK_UNCORRECTABLE", "CONTAINED", "TENSOR_MEMORY_LEAK", "EXTERNAL_DEVICE",
)
"""The errors after which the context does nothing any more."""
