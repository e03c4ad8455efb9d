"""Faults that users of GPU kernel compilers meet, as demands on this one: those that tests of the rooms guard already.

The demands without such a test have theirs in the files beside this one.  Here each is named with the tests that would
fail without it, so that a test which is renamed or dropped is missed, and the demand with it.
"""

from __future__ import annotations

import ast
import functools
from pathlib import Path

import pytest

TESTS = Path(__file__).parent.parent

#: What must hold, and the tests that say so (paths from ``tests/``).
COVERED: dict[str, tuple[str, ...]] = {
    # --- descriptors and addresses ---
    "a descriptor over more bytes than it can count is refused, with the limit": (
        "expr/test_rocdl.py::test_extents_above_the_limit_are_refused_by_name",
        "sim/test_memory.py::test_descriptor_larger_than_its_buffer_is_found",
    ),
    "parts of a tensor above 4 GiB start where 64-bit arithmetic says": (
        "expr/test_reach.py::test_rows_of_weights_above_4_gib_are_where_they_are",
        "expr/test_reach.py::test_a_thread_far_down_a_large_matrix_finds_its_row",
    ),
    "an offset that does not fit its field is an error, and never cut to the field": (
        "expr/test_rocdl.py::test_offsets_that_cannot_be_encoded_are_refused",
        "codegen/test_address.py::test_a_64_bit_offset_into_a_buffer_is_refused",
        "atoms/test_emission.py::test_imm_offset_must_be_a_constant_that_the_instruction_encodes",
    ),
    "what a chip does not know is refused, not taken for its predecessor": (
        "expr/test_rocdl.py::test_flags_turn_the_bounds_check_on",
        "compiler/test_bad_input.py::test_an_unknown_arch_names_the_known_ones",
        "test_target.py::test_what_a_chip_lacks_is_refused_with_the_legal_values",
    ),
    "a move to LDS has only the widths of the chip": (
        "atoms/test_modifiers.py::test_asynchronous_copies_are_refused_by_width_place_and_chip",
        "atoms/test_copies.py::test_a_copy_to_lds_of_another_width_is_refused",
        "atoms/test_copies.py::test_copies_to_lds_are_on_the_chips_that_have_them",
    ),
    # --- layouts and atoms ---
    "a composition is the functional one or is refused": (
        "layout/test_errors.py::test_a_wrong_composition_is_refused_with_operation_layouts_mode_and_divisibility",
        "layout/test_laws.py::test_composition_is_a_of_b_or_is_refused",
    ),
    "inverses are right by their law, whatever form they have": (
        "layout/test_errors.py::test_left_inverse_undoes_the_layout",
        "layout/test_laws.py::test_left_inverse_law_or_refusal",
        "layout/test_laws.py::test_right_inverse_law",
    ),
    "nested shapes with run-time extents index as NumPy does": (
        "layout/test_dynamic.py::test_nested_dynamic_shapes_index_as_numpy_does",
        "expr/test_layouts.py::test_run_time_layouts_equal_numpy",
    ),
    "no more alignment is promised than the swizzle keeps, and always a power of two": (
        "codegen/test_address.py::test_alignment_is_what_pointer_offset_and_swizzle_leave",
        "codegen/test_address.py::test_loads_carry_the_derived_alignment",
        "codegen/test_address.py::test_an_access_wider_than_its_swizzle_keeps_together_is_refused",
    ),
    "a run-time index into registers finds its element or is refused": (
        "expr/test_vector.py::test_a_run_time_index_selects_in_a_loaded_fragment",
        "expr/test_vector.py::test_a_run_time_index_into_registers_is_refused",
        "passes/test_ssa.py::test_a_run_time_index_reads_the_element",
    ),
    "a tile that threads and values do not cover is refused": (
        "layout/test_tiled.py::test_tile_of_112x64_with_256_threads_and_16_byte_loads_is_refused",
        "layout/test_tiled.py::test_tile_of_128x64_with_256_threads_and_16_byte_loads_is_covered",
        "atoms/test_wrappers.py::test_a_tiled_copy_that_does_not_cover_its_tile_is_refused",
        "expr/test_tensor.py::test_a_tile_that_the_threads_do_not_cover_is_refused",
    ),
    "a matrix instruction with few values of K takes operands of both majors": (
        "expr/test_kernels.py::test_tiled_mfma_of_four_waves",
    ),
    "a thread-value layout of plain threads and values covers each element once": (
        "layout/test_tiled.py::test_thread_value_layout_of_256_threads_with_32_values_covers_each_element_once",
        "layout/test_laws.py::test_thread_value_layouts_cover_the_tile_once",
    ),
    # --- numbers ---
    "a conversion that the chip lacks is refused by name": (
        "expr/test_rocdl.py::test_conversions_that_a_chip_lacks_are_refused_by_name",
        "expr/test_numeric.py::test_conversion_that_the_chip_lacks_is_refused_by_name",
        "atoms/test_conversions.py::test_a_conversion_is_refused_where_the_manual_lacks_it",
    ),
    "integers wrap and promote by one set of rules": (
        "expr/test_numeric.py::test_promotion_follows_the_rules_for_every_pair",
        "expr/test_numeric.py::test_integer_arithmetic_wraps",
        "expr/test_random_arith.py::test_random_expressions_wrap_like_32_bit_integers",
        "expr/test_vector.py::test_a_vector_of_f16_stays_f16_with_literals",
    ),
    # --- code object and launch ---
    "static and dynamic LDS are counted together": (
        "compiler/test_launch.py::test_static_and_dynamic_lds_together_must_fit",
        "compiler/test_launch.py::test_the_kernels_own_allocations_decide_what_is_given",
    ),
    "a kernel is told how much LDS the launch gave": (
        "codeobject/test_kernarg.py::test_hidden_arguments_complete_the_segment",
        "runtime/test_module.py::test_the_kernel_gets_the_whole_segment_hidden_arguments_included",
    ),
    "packed elements take whole bytes, rounded up": (
        "expr/test_shared.py::test_sizes_are_rounded_up_to_bytes",
        "expr/test_rocdl.py::test_records_are_derived_from_the_layout",
    ),
    "occupancy is named for what it is, and has a range": (
        "compiler/test_launch.py::test_waves_per_eu_from_1_to_8",
        "compiler/test_launch.py::test_waves_per_eu_outside_is_refused_wherever_it_is_given",
    ),
    "a wait or barrier that is missing around LDS is found, and right code passes": (
        "sim/test_faults.py::test_exchange_through_lds_with_fenced_barrier_is_clean",
        "sim/test_faults.py::test_barrier_without_fences_is_a_race",
        "sim/test_faults.py::test_explicit_wait_before_the_barrier_orders_lds",
        "sim/test_faults.py::test_wait_for_global_memory_alone_does_not_order_lds",
        "sim/test_faults.py::test_overwriting_what_another_wave_still_reads_is_a_race",
        "sim/test_memory.py::test_dma_read_by_another_wave_without_a_wait_is_found",
        "sim/test_memory.py::test_partial_waits_complete_the_oldest_dma",
        "codegen/test_backend.py::test_the_lds_wait_stands_before_the_barrier",
    ),
    "arguments lie where the metadata says": (
        "codeobject/test_kernarg.py::test_llvm_gives_the_classic_trap_the_offsets_0_8_16_24_32",
        "codeobject/test_kernarg.py::test_the_classic_trap_is_packed_at_its_offsets",
        "runtime/test_args.py::test_both_packers_agree_on_bytes_and_on_refusals",
    ),
    "loading code objects leaves no file open": ("runtime/test_module.py::test_modules_load_and_unload_without_end",),
    "without HIP the import works, and the first use says what was looked for": (
        "runtime/test_hip.py::test_importing_the_room_touches_neither_hip_nor_numpy",
        "runtime/test_hip.py::test_a_missing_library_is_one_sentence_with_the_places",
    ),
    "loop-carried values keep shape and type, branches do not leak, called functions may branch": (
        "compiler/test_control_flow.py::test_a_vector_is_carried_whole_with_its_shape",
        "compiler/test_control_flow.py::test_a_dict_changed_in_one_branch_does_not_leak_into_the_other",
        "compiler/test_control_flow.py::test_helpers_closures_and_recursion_are_rewritten",
        "compiler/test_control_errors.py::test_a_vector_that_changes_its_length",
    ),
    # --- tools ---
    "the signature is in the key of the cache": (
        "compiler/test_jit.py::test_adding_a_parameter_changes_the_key",
        "compiler/test_cache.py::test_specs_targets_options_and_hints_are_in_the_key",
    ),
    "a tuner gives every trial the same inputs": (
        "compiler/test_sweep.py::test_inputs_are_restored_between_trials",
        "runtime/test_autotune.py::test_time_on_a_device_restores_too",
    ),
    "LLVM is nobody else's LLVM: it lives in a process of its own": (
        "test_arrows.py::test_the_fence_sees_llvmlite_outside_the_worker",
        "test_import_time.py::test_the_compile_path_imports_no_heavy_package",
    ),
}


@functools.cache
def names(path: str) -> frozenset[str]:
    """Test functions of a file."""
    tree = ast.parse((TESTS / path).read_text(encoding="utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


@pytest.mark.parametrize("demand", COVERED)
def test_the_tests_that_guard_it_are_there(demand: str) -> None:
    missing = [test for test in COVERED[demand] if test.partition("::")[2] not in names(test.partition("::")[0])]
    assert not missing


def test_a_test_that_is_gone_is_seen() -> None:
    assert "test_a_test_that_is_gone_is_seen" in names("user_reports/test_covered.py")
    assert "test_that_nobody_wrote" not in names("user_reports/test_covered.py")
