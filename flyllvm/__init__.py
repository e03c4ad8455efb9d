"""flyllvm: GPU kernels from Python to AMD code objects through LLVM, without MLIR."""

__version__ = "0.1.0"
