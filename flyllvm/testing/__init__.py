"""For tests of kernels: `flyllvm.testing.plugin` is a pytest plugin that runs them in the simulator."""
