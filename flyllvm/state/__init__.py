"""The run-time state of stateful atoms: named fields that lower to one literal LLVM struct."""

from .fields import AtomStateField, StateStruct

__all__ = ["AtomStateField", "StateStruct"]
