#include "core/check/promises.h"

namespace tandem::checker {

const std::vector<Promise>& promises() {
  static const std::vector<Promise> all{
      {"declarations", "shapes, traits, weights, cost and kernel fit each other", &declares},
      {"memory", "only outputs and gradients are written, within their bounds", &stays_in_memory},
      {"overwrite", "every element is written, whatever memory held before", &overwrites},
      {"accumulate", "weight gradients are added to earlier ones on request", &accumulates},
      {"input gradients", "backward_data is the derivative of forward", &check_input_gradients},
      {"weight gradients", "backward_weights is the derivative of forward",
       &check_weight_gradients},
      {"one call", "backward gives what backward_data and backward_weights give",
       &gives_both_in_one_call},
      {"reads", "backward reads only what the traits name", &reads_only_what_its_traits_name},
      {"twice", "one tensor as several inputs gives what equal tensors give",
       &takes_a_tensor_twice},
      {"skip", "gradients that are not wanted or absent may be null", &skips_what_is_not_wanted},
      {"flags", "results do not depend on which gradients are wanted", &needs_no_flag},
      {"rows", "a row depends on the same row of the inputs only", &rows_are_independent},
      {"parts", "parts of the batch give what the whole batch gives", &parts_of_the_batch},
      {"statistics", "statistics of parts merge to those of the batch", &statistics_of_parts},
      {"bits", "same bits each time, same values with 1, 2 and 3 threads", &repeats_its_bits},
      {"random", "random numbers come from seed, step, layer and position", &draws_by_position},
      {"instances", "other kernels of the layer may run in between and at the same time",
       &works_beside_others},
      {"phases", "testing gives what training gives, of dropped elements in the mean",
       &tests_as_it_trains},
      {"saves nothing", "backward needs no forward of the same kernel where the type says so",
       &needs_no_forward_of_its_own},
      {"labels", "a label that is none changes no other row, and reads and writes no other memory",
       &keeps_labels_in_their_row},
      {"extremes", "zeros, equal, saturated, tiny and large values give finite results",
       &stays_finite},
      {"nan", "a NaN is passed on", &passes_nan_on, false},
      {"in place", "same bits if output 0 has the memory of input 0", &runs_in_place},
      {"layouts", "every offered layout gives the same values", &equal_in_every_layout},
      {"dtypes", "every offered dtype gives the same values", &equal_in_every_dtype},
      {"fusions", "sums and ReLUs in the kernel give what layers of their own give",
       &equal_with_fusions},
      {"activation", "passes give what the activation that the type names gives",
       &computes_its_activation},
      {"slices", "a slice of the channels is that part of the whole", &slices_are_parts},
      {"samples", "rows are divided by the normaliser, and counted if they hold a sample",
       &counts_samples},
      {"loss weight", "a loss multiplies its gradient by the loss weight",
       &scales_with_the_loss_weight},
      {"growth", "memory, files and threads do not grow", &holds_no_more_each_time, false},
      {"capture", "a pass that is captured into a graph gives the same values", &equal_in_a_capture,
       false},
      {"cost", "declared arithmetic and bytes fit the time, and grow with the batch as it does",
       &costs_what_it_declares, false},
      {"time", "time for each element, beside a copy", &measures_time, false},
  };
  return all;
}

}  // namespace tandem::checker
