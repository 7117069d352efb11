#include "core/check/promises.h"

#include <malloc.h>

#include <algorithm>
#include <filesystem>

#include "core/check/gradients.h"
#include "core/check/passes.h"
#include "core/plugin/layer_questions.h"

namespace tandem::checker {

namespace {

// What different orders of float32 sums make of a result.
constexpr double rounding = 1e-4;

PlainTensor rows(const PlainTensor& tensor, int64_t begin, int64_t end) {
  return first_axis_of(tensor, begin, end);
}

// ---- What the type declares

Outcome declares(const Subject& subject, const Case& one) {
  const LayerRun run(one.setup, subject.registry, subject.device);
  const bool is_scalar = subject.has(TANDEM_LOSS | TANDEM_METRIC);
  for (size_t i = 0; i < run.output_shapes().size(); ++i) {
    const Shape& shape = run.output_shapes()[i];
    if (is_scalar && i == 0 && element_count(shape) != 1) {
      return broken("a loss or metric has an output of more than one element");
    }
    if (subject.has(TANDEM_PER_SAMPLE) && !is_scalar && shape.n != one.setup.inputs[0].shape.n) {
      return broken(fmt::format("output {} has {} rows, but the input has {}", i, shape.n,
                                one.setup.inputs[0].shape.n));
    }
  }
  if (subject.has(TANDEM_SAVES_NOTHING) && run.report().saved_bytes > 0) {
    return broken(fmt::format("the type says TANDEM_SAVES_NOTHING, but the kernel saves {} bytes",
                              run.report().saved_bytes));
  }
  if (is_trained(run) && subject.kernel.backward_weights == nullptr) {
    return broken("the type has trained weights, but the kernel has no backward_weights");
  }
  if (subject.kernel.backward_data == nullptr && has_data_gradient(subject.type) &&
      !run.output_shapes().empty()) {
    return broken(
        "the kernel has no backward_data; a type without one says so by TANDEM_METRIC or by inputs "
        "that are TANDEM_INPUT_NON_DIFFERENTIABLE");
  }
  std::vector<Shape> shapes;
  for (const PlainTensor& input : one.setup.inputs) shapes.push_back(input.shape);
  const Attributes attributes = one.setup.attributes != nullptr
                                    ? *one.setup.attributes
                                    : layer_attributes(subject.type, one.setup.parameters);
  const tandem_layer_query query{sizeof(tandem_layer_query),
                                 one.setup.phase,
                                 attributes.handle(),
                                 shapes.data(),
                                 static_cast<uint32_t>(shapes.size()),
                                 one.setup.output_count};
  tandem_layer_cost cost{};
  tandem::check(ask_cost(subject.type, query, cost), "cost");
  for (const double number :
       {cost.forward_flops, cost.backward_data_flops, cost.backward_weights_flops,
        cost.forward_bytes, cost.backward_data_bytes, cost.backward_weights_bytes}) {
    if (!(number >= 0) || !std::isfinite(number)) {
      return broken(fmt::format("its cost has the number {}", number));
    }
  }
  return kept();
}

// ---- Memory

Outcome stays_in_memory(const Subject& subject, const Case& one) {
  LayerRun run(one.setup, subject.registry, subject.device);
  try {
    static_cast<void>(pass_all(subject, run, factors_of(run)));
  } catch (const Violation& violation) {
    return broken(violation.what());
  }
  return kept();
}

// What memory held before must not matter: not to what is overwritten, and not elsewhere. NaN stays
// where nothing was written.
Outcome overwrites(const Subject& subject, const Case& one) {
  LayerSetup other = one.setup;
  other.fill = GuardedMemory::finite;
  const Results a = results_of(subject, one.setup), b = results_of(subject, other);
  const std::string differs = differ(a, b);
  if (!differs.empty()) return broken(differs + " with what the memory held before");
  return kept();
}

Outcome reads_only_what_its_traits_name(const Subject& subject, const Case& one) {
  if (one.setup.flags == 0) return not_applicable();
  LayerRun hidden(one.setup, subject.registry, subject.device);
  LayerRun shown(one.setup, subject.registry, subject.device);
  hidden.tolerate_violations();
  shown.tolerate_violations();
  shown.show_everything();
  const std::string differs = differ(pass_all(subject, hidden, factors_of(hidden)),
                                     pass_all(subject, shown, factors_of(shown)));
  if (differs.empty()) return kept();
  return broken(differs +
                " if inputs and outputs that no TANDEM_BACKWARD_READS_ trait names are gone");
}

Outcome accumulates(const Subject& subject, const Case& one) {
  LayerRun run(one.setup, subject.registry, subject.device);
  if (!wants_weights(subject, run, one.setup)) return not_applicable();
  run.tolerate_violations();
  const std::vector<PlainTensor> factors = factors_of(run);
  static_cast<void>(run.forward());
  const std::vector<PlainTensor> fresh = run.backward_weights(factors);
  std::vector<PlainTensor> start, expected;
  for (const PlainTensor& gradient : fresh) {
    float largest = 1;
    for (const float value : gradient.values) largest = std::max(largest, std::abs(value));
    start.push_back(random_tensor(gradient.shape, 8, 3 * largest));
    expected.push_back(start.back());
    for (size_t i = 0; i < gradient.values.size(); ++i) {
      expected.back().values[i] += gradient.values[i];
    }
  }
  const std::vector<PlainTensor> added = run.backward_weights(factors, start);
  const std::vector<tandem_weight> declared = run.declared_weights();
  for (size_t i = 0; i < added.size(); ++i) {
    if (declared[i].kind != TANDEM_TRAINED) continue;
    const double d = difference(added[i].values, expected[i].values);
    if (d > 1e-5) {
      return broken(
          fmt::format("with TANDEM_ACCUMULATE the gradient of weight '{}' is not the "
                      "earlier one plus this one",
                      declared[i].name));
    }
  }
  return kept();
}

Outcome skips_what_is_not_wanted(const Subject& subject, const Case& one) {
  if (!wants_data(subject, one.setup)) return not_applicable();
  LayerRun all(one.setup, subject.registry, subject.device);
  all.tolerate_violations();
  const std::vector<PlainTensor> factors = factors_of(all);
  static_cast<void>(all.forward());
  const std::vector<PlainTensor> expected = all.backward_data(factors);
  bool looked = false;
  // Some gradient is wanted, or the host does not call the pass.
  const auto wanted = std::count_if(expected.begin(), expected.end(),
                                    [](const PlainTensor& t) { return !t.values.empty(); });
  for (size_t skipped = 0; skipped < expected.size() && wanted > 1; ++skipped) {
    if (expected[skipped].values.empty()) continue;
    std::vector<bool> unwanted(expected.size());
    unwanted[skipped] = true;
    LayerRun run(one.setup, subject.registry, subject.device);
    run.tolerate_violations();
    run.leave_out(unwanted, {});
    static_cast<void>(run.forward());
    const std::vector<PlainTensor> gradients = run.backward_data(factors);
    looked = true;
    for (size_t i = 0; i < gradients.size(); ++i) {
      if (i == skipped || same_bits(gradients[i].values, expected[i].values)) continue;
      return broken(fmt::format(
          "the gradient of input {} is another one if that of input {} is not wanted", i, skipped));
    }
  }
  const size_t outputs = factors.size();
  for (size_t absent = 0; absent < outputs && outputs > 1 && !subject.has(TANDEM_LOSS); ++absent) {
    std::vector<PlainTensor> zeros = factors;
    std::fill(zeros[absent].values.begin(), zeros[absent].values.end(), 0.0F);
    std::vector<bool> gone(outputs);
    gone[absent] = true;
    const Results with_zeros = pass_all(subject, all, zeros);
    LayerRun run(one.setup, subject.registry, subject.device);
    run.tolerate_violations();
    run.leave_out({}, gone);
    const std::string differs = differ(pass_all(subject, run, zeros), with_zeros, 1e-6);
    looked = true;
    if (!differs.empty()) {
      return broken(fmt::format("{} if the gradient of output {} is absent instead of zero",
                                differs, absent));
    }
  }
  return looked ? kept() : not_applicable();
}

// ---- Rows

Outcome rows_are_independent(const Subject& subject, const Case& one) {
  const int64_t n = one.setup.inputs.empty() ? 0 : one.setup.inputs[0].shape.n;
  if (!subject.has(TANDEM_PER_SAMPLE) || n < 2) return not_applicable();
  const Results before = results_of(subject, one.setup);
  for (const int64_t changed : {int64_t{0}, n - 1}) {
    LayerSetup setup = one.setup;
    for (size_t i = 0; i < setup.inputs.size(); ++i) {
      PlainTensor& input = setup.inputs[i];
      if (!one.plain[i] || input.shape.n != n) continue;
      const int64_t size = element_count(input.shape) / n;
      for (int64_t k = changed * size; k < (changed + 1) * size; ++k) {
        input.values[static_cast<size_t>(k)] = 0.3F + 1.7F * input.values[static_cast<size_t>(k)];
      }
    }
    const Results after = results_of(subject, setup);
    const auto others = [&](const std::vector<PlainTensor>& a, const std::vector<PlainTensor>& b,
                            const char* what) -> std::string {
      for (size_t i = 0; i < a.size(); ++i) {
        if (a[i].values.empty() || a[i].shape.n != n) continue;
        for (int64_t row = 0; row < n; ++row) {
          if (row == changed) continue;
          if (difference(rows(a[i], row, row + 1).values, rows(b[i], row, row + 1).values) <=
              1e-6) {
            continue;
          }
          return fmt::format("row {} of {} {} changes with row {} of the inputs", row, what, i,
                             changed);
        }
      }
      return "";
    };
    std::string mixed;
    if (!subject.has(TANDEM_LOSS | TANDEM_METRIC)) {
      mixed = others(before.outputs, after.outputs, "output");
    }
    if (mixed.empty()) {
      mixed = others(before.input_gradients, after.input_gradients, "the gradient of input");
    }
    if (!mixed.empty()) return broken(mixed);
  }
  return kept();
}

LayerSetup part_of(const LayerSetup& whole, int64_t begin, int64_t end) {
  const int64_t n = whole.inputs[0].shape.n;
  LayerSetup part = whole;
  for (PlainTensor& input : part.inputs) {
    if (input.shape.n == n) input = rows(input, begin, end);
  }
  if (!whole.row_labels.empty()) {
    part.row_labels = {whole.row_labels.begin() + begin, whole.row_labels.begin() + end};
  }
  part.batch_begin = whole.batch_begin + begin;
  return part;
}

std::vector<PlainTensor> joined(const std::vector<PlainTensor>& a,
                                const std::vector<PlainTensor>& b) {
  std::vector<PlainTensor> result = a;
  for (size_t i = 0; i < a.size(); ++i) {
    result[i].shape.n += b[i].shape.n;
    result[i].values.insert(result[i].values.end(), b[i].values.begin(), b[i].values.end());
  }
  return result;
}
std::vector<PlainTensor> added(std::vector<PlainTensor> a, const std::vector<PlainTensor>& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t k = 0; k < a[i].values.size(); ++k) a[i].values[k] += b[i].values[k];
  }
  return a;
}

// Devices have parts of the batch, and micro-batches come one after the other.
Outcome parts_of_the_batch(const Subject& subject, const Case& one) {
  const int64_t n = one.setup.inputs.empty() ? 0 : one.setup.inputs[0].shape.n;
  if (!subject.has(TANDEM_PER_SAMPLE) || n < 2) return not_applicable();
  const bool is_scalar = subject.has(TANDEM_LOSS | TANDEM_METRIC);
  const int64_t cut = n / 2;
  LayerRun whole(one.setup, subject.registry, subject.device);
  whole.tolerate_violations();
  const std::vector<PlainTensor> factors = factors_of(whole);
  const Results expected = pass_all(subject, whole, factors);
  for (const bool later : {false, true}) {  // a later micro-batch instead of another device
    LayerSetup setups[2] = {part_of(one.setup, 0, cut), part_of(one.setup, cut, n)};
    if (later) {
      setups[1].batch_begin = one.setup.batch_begin;
      setups[1].step.first_row = static_cast<int32_t>(cut);
    }
    Results parts[2];
    for (int i = 0; i < 2; ++i) {
      LayerRun run(setups[i], subject.registry, subject.device);
      run.tolerate_violations();
      std::vector<PlainTensor> own = factors;
      for (PlainTensor& factor : own) {
        if (factor.shape.n == n && !is_scalar) {
          factor = i == 0 ? rows(factor, 0, cut) : rows(factor, cut, n);
        }
      }
      // Outputs of a loss beyond the first have rows.
      for (size_t k = 0; k < own.size() && is_scalar; ++k) {
        if (!equal(own[k].shape, run.output_shapes()[k])) {
          own[k] = i == 0 ? rows(own[k], 0, cut) : rows(own[k], cut, n);
        }
      }
      parts[i] = pass_all(subject, run, own);
    }
    std::string differs;
    if (is_scalar) {
      std::vector<PlainTensor> sum = added({parts[0].outputs[0]}, {parts[1].outputs[0]});
      differs = differ("the sum of output", sum, {expected.outputs[0]}, rounding);
    } else {
      differs =
          differ("output", joined(parts[0].outputs, parts[1].outputs), expected.outputs, rounding);
    }
    if (differs.empty()) {
      std::vector<PlainTensor> gradients =
          joined(parts[0].input_gradients, parts[1].input_gradients);
      for (size_t i = 0; i < gradients.size(); ++i) {
        if (one.setup.inputs[i].shape.n != n) gradients[i] = expected.input_gradients[i];
      }
      differs = differ("the gradient of input", gradients, expected.input_gradients, rounding);
    }
    if (differs.empty()) {
      differs = differ("the gradient of weight",
                       added(parts[0].weight_gradients, parts[1].weight_gradients),
                       expected.weight_gradients, 10 * rounding);
    }
    if (!differs.empty()) {
      return broken(fmt::format("{} if rows {} to {} are {}", differs, cut, n - 1,
                                later ? "a micro-batch of their own (tandem_step.first_row)"
                                      : "on another device (batch_begin)"));
    }
  }
  return kept();
}

Outcome statistics_of_parts(const Subject& subject, const Case& one) {
  const int64_t n = one.setup.inputs.empty() ? 0 : one.setup.inputs[0].shape.n;
  if (!subject.has(TANDEM_BATCH_STATISTICS) || n < 2) return not_applicable();
  LayerRun whole(one.setup, subject.registry, subject.device);
  if (whole.statistics_floats().forward == 0) return not_applicable();
  whole.tolerate_violations();
  const std::vector<PlainTensor> expected = whole.forward();
  LayerRun first(part_of(one.setup, 0, n / 2), subject.registry, subject.device);
  LayerRun second(part_of(one.setup, n / 2, n), subject.registry, subject.device);
  first.tolerate_violations();
  second.tolerate_violations();
  const std::vector<float> of_second = second.forward_statistics();
  const std::vector<PlainTensor> outputs = first.forward({of_second});
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (difference(outputs[i].values, rows(expected[i], 0, n / 2).values) > rounding) {
      return broken(
          fmt::format("output {} differs if the batch is on two devices, whose "
                      "statistics are merged",
                      i));
    }
  }
  return kept();
}

// ---- The same result

Outcome repeats_its_bits(const Subject& subject, const Case& one) {
  LayerRun run(one.setup, subject.registry, subject.device);
  run.tolerate_violations();
  const std::vector<PlainTensor> factors = factors_of(run);
  const Results first = pass_all(subject, run, factors);
  // A state, such as a running mean, is given anew each time.
  std::string differs = differ(pass_all(subject, run, factors), first);
  if (!differs.empty()) return broken(differs + " when the same pass runs again");
  differs = differ(results_of(subject, one.setup), first);
  if (!differs.empty()) return broken(differs + " when the layer is prepared again");
  for (const int32_t threads : {1, 3}) {
    LayerSetup setup = one.setup;
    setup.threads = threads;
    const Results other = results_of(subject, setup);
    differs = differ(other, first, rounding);
    if (!differs.empty()) return broken(fmt::format("{} with {} threads", differs, threads));
    differs = differ(results_of(subject, setup), other);
    if (!differs.empty()) {
      return broken(fmt::format("{} when it runs again with {} threads", differs, threads));
    }
  }
  return kept();
}

Outcome draws_by_position(const Subject& subject, const Case& one) {
  const Results first = results_of(subject, one.setup);
  std::string differs;
  const auto changed = [&](auto change) {
    LayerSetup setup = one.setup;
    change(setup);
    return differ(results_of(subject, setup), first);
  };
  const auto change_all = [](LayerSetup& s) {
    s.step.seed += 1;
    s.step.step += 1;
    s.layer_index += 1;
  };
  if (!subject.has(TANDEM_RANDOM)) {
    differs = changed(change_all);
    if (differs.empty()) return kept();
    return broken(differs + " with seed and step, but the type has no TANDEM_RANDOM");
  }
  // A layer may draw one bit for each row, so that a few rows are often the same by chance.
  const auto never_changes = [&](const auto& add) {
    for (int more = 1; more <= 12; ++more) {
      if (!changed([&](LayerSetup& s) { add(s, more); }).empty()) return false;
    }
    return true;
  };
  if (never_changes([&](LayerSetup& s, int more) {
        for (int i = 0; i < more; ++i) change_all(s);
      })) {
    return not_applicable();  // nothing is drawn in this case
  }
  using Add = void (*)(LayerSetup&, int);
  for (const auto& [what, add] : std::initializer_list<std::pair<const char*, Add>>{
           {"the seed", [](LayerSetup&s, int more) { s.step.seed += uint64_t(more); }},
           {"the step", [](LayerSetup&s, int more) { s.step.step += uint64_t(more); }},
           {"the layer's index", [](LayerSetup&s, int more) { s.layer_index += uint32_t(more); }},
           {"batch_begin", [](LayerSetup&s, int more) { s.batch_begin += 1000 * more; }},
           {"first_row", [](LayerSetup&s, int more) { s.step.first_row += 1000 * more; }}}) {
    if (never_changes(add)) return broken(fmt::format("the numbers do not depend on {}", what));
  }
  LayerSetup testing = one.setup;
  testing.phase = TANDEM_TEST;
  testing.flags = 0;
  const Results still = results_of(subject, testing);
  change_all(testing);
  differs = differ(results_of(subject, testing), still);
  return differs.empty() ? kept() : broken(differs + " with seed and step in testing, too");
}

Outcome needs_no_flag(const Subject& subject, const Case& one) {
  if (one.setup.flags == 0) return not_applicable();
  const Results both = results_of(subject, one.setup);
  LayerSetup setup = one.setup;
  setup.flags = TANDEM_WANTS_BACKWARD_WEIGHTS;
  const Results weights = results_of(subject, setup);
  std::string differs =
      differ("the gradient of weight", weights.weight_gradients, both.weight_gradients, rounding);
  if (!differs.empty()) return broken(differs + " if no input's gradient is wanted");
  differs = differ("output", weights.outputs, both.outputs, rounding);
  if (!differs.empty()) return broken(differs + " if no input's gradient is wanted");
  setup.flags = TANDEM_WANTS_BACKWARD_DATA;
  differs = differ("the gradient of input", results_of(subject, setup).input_gradients,
                   both.input_gradients, rounding);
  if (!differs.empty()) return broken(differs + " if no weight's gradient is wanted");
  setup.flags = 0;
  differs = differ("output", results_of(subject, setup).outputs, both.outputs, rounding);
  if (!differs.empty()) return broken(differs + " if no gradient is wanted");
  return kept();
}

Outcome runs_in_place(const Subject& subject, const Case& one) {
  if (!subject.has(TANDEM_IN_PLACE)) return not_applicable();
  LayerRun apart(one.setup, subject.registry, subject.device);
  if (apart.output_shapes().empty() ||
      !equal(apart.output_shapes()[0], one.setup.inputs[0].shape)) {
    return not_applicable();
  }
  LayerSetup setup = one.setup, alone = one.setup;
  // The host does not run a layer in place whose backward pass reads the inputs.
  if (subject.has(TANDEM_BACKWARD_READS_INPUTS)) setup.flags = alone.flags = 0;
  setup.flags |= TANDEM_RUNS_IN_PLACE;
  const std::string differs = differ(results_of(subject, setup), results_of(subject, alone));
  return differs.empty() ? kept() : broken(differs + " if it runs in place");
}

Outcome equal_in_every_layout(const Subject& subject, const Case& one) {
  LayerRun plain(one.setup, subject.registry, subject.device);
  const std::vector<tandem_layout_option> options = plain.layouts();
  const Results expected = results_of(subject, one.setup);
  bool looked = false;
  for (const tandem_layout_option& option : options) {
    LayerSetup setup = one.setup;
    setup.input_layout = option.input;
    setup.output_layout = option.output;
    if (option.input == TANDEM_NCHW && option.output == TANDEM_NCHW) continue;
    looked = true;
    const std::string differs = differ(results_of(subject, setup), expected, 1e-3);
    if (!differs.empty()) {
      return broken(fmt::format("{} in layout {} -> {}", differs, layout_name(option.input),
                                layout_name(option.output)));
    }
  }
  return looked ? kept() : not_applicable();
}

Outcome equal_in_every_dtype(const Subject& subject, const Case& one) {
  if (subject.has(TANDEM_LOSS | TANDEM_METRIC)) return not_applicable();
  bool looked = false;
  for (const auto& [dtype, tolerance] :
       {std::pair{TANDEM_BFLOAT16, 0.03}, {TANDEM_FLOAT16, 0.005}}) {
    if ((subject.kernel.dtypes >> dtype & 1U) == 0) continue;
    LayerSetup rounded = one.setup, narrow = one.setup;
    for (size_t i = 0; i < rounded.inputs.size(); ++i) {
      if (is_label(subject.type, i)) continue;
      rounded.inputs[i] = narrow.inputs[i] = rounded_to(dtype, one.setup.inputs[i]);
    }
    narrow.input_dtype = narrow.output_dtype = dtype;
    try {
      LayerRun run(narrow, subject.registry, subject.device);
    } catch (const Error&) {
      continue;  // not on this machine
    }
    looked = true;
    const std::string differs = differ("output", results_of(subject, narrow).outputs,
                                       results_of(subject, rounded).outputs, tolerance);
    if (!differs.empty()) return broken(fmt::format("{} in {}", differs, dtype_name(dtype)));
  }
  return looked ? kept() : not_applicable();
}

Outcome slices_are_parts(const Subject& subject, const Case& one) {
  if (!subject.has(TANDEM_SLICED_OUTPUTS)) return not_applicable();
  LayerRun whole(one.setup, subject.registry, subject.device);
  const Shape shape = whole.output_shapes()[0];
  if (shape.c < 2 || whole.output_shapes().size() != 1) return not_applicable();
  const std::vector<PlainTensor> expected = whole.forward();
  for (const auto& [begin, end] : {std::pair{int64_t{0}, shape.c / 2}, {shape.c / 2, shape.c}}) {
    LayerSetup setup = one.setup;
    setup.slice_begin = begin;
    setup.slice_end = end;
    LayerRun part(setup, subject.registry, subject.device);
    const std::vector<PlainTensor> outputs = part.forward();
    const PlainTensor cut = channels_of(expected[0], begin, end);
    if (difference(outputs[0].values, cut.values) > rounding) {
      return broken(fmt::format("output channels {} to {} differ if a binding computes only them",
                                begin, end - 1));
    }
  }
  return kept();
}

// ---- Losses

Outcome counts_samples(const Subject& subject, const Case& one) {
  if (!subject.has(TANDEM_LOSS | TANDEM_METRIC)) return not_applicable();
  const int64_t n = one.setup.inputs[0].shape.n;
  const Results first = results_of(subject, one.setup);
  LayerSetup setup = one.setup;
  setup.normaliser *= 2;
  Results halves = results_of(subject, setup);
  // A plain sum is allowed, too.
  const bool is_sum = differ(halves, first).empty();
  const float factor = is_sum ? 1 : 2;
  for (float& value : halves.outputs[0].values) value *= factor;
  for (PlainTensor& gradient : halves.input_gradients) {
    for (float& value : gradient.values) value *= factor;
  }
  std::string differs = differ("output", {halves.outputs[0]}, {first.outputs[0]}, rounding);
  if (differs.empty()) {
    differs =
        differ("the gradient of input", halves.input_gradients, first.input_gradients, rounding);
  }
  if (!differs.empty()) return broken("it is not divided by the normaliser: " + differs);
  if (n < 2) return kept();
  // A row that holds no sample: nothing in it may matter.
  setup = one.setup;
  setup.row_labels.assign(static_cast<size_t>(n), 1.0F);
  setup.row_labels[0] = -1;
  const Results without = results_of(subject, setup);
  for (size_t i = 0; i < setup.inputs.size(); ++i) {
    if (!one.plain[i] || setup.inputs[i].shape.n != n) continue;
    const int64_t size = element_count(setup.inputs[i].shape) / n;
    for (int64_t k = 0; k < size; ++k) setup.inputs[i].values[static_cast<size_t>(k)] += 2;
  }
  const Results changed = results_of(subject, setup);
  differs = differ("output", {changed.outputs[0]}, {without.outputs[0]}, 1e-6);
  if (!differs.empty()) {
    return broken(differs + " with a row that holds no sample (row_labels below zero)");
  }
  for (size_t i = 0; i < changed.input_gradients.size(); ++i) {
    const PlainTensor& gradient = changed.input_gradients[i];
    if (gradient.values.empty() || gradient.shape.n != n) continue;
    const std::vector<float> row = rows(gradient, 0, 1).values;
    if (std::any_of(row.begin(), row.end(), [](float v) { return v != 0; })) {
      return broken(fmt::format("input {} has a gradient in a row that holds no sample", i));
    }
  }
  return kept();
}

Outcome scales_with_the_loss_weight(const Subject& subject, const Case& one) {
  if (!wants_data(subject, one.setup) || !subject.has(TANDEM_LOSS)) return not_applicable();
  LayerRun run(one.setup, subject.registry, subject.device);
  run.tolerate_violations();
  std::vector<PlainTensor> factors = factors_of(run);
  static_cast<void>(run.forward());
  std::vector<PlainTensor> once = run.backward_data(factors);
  for (float& value : factors[0].values) value *= 3;
  const std::vector<PlainTensor> thrice = run.backward_data(factors);
  for (PlainTensor& gradient : once) {
    for (float& value : gradient.values) value *= 3;
  }
  const std::string differs = differ("the gradient of input", thrice, once, 1e-5);
  return differs.empty() ? kept() : broken(differs + " from the loss weight times itself");
}

// ---- NaN

bool any_nan(const std::vector<PlainTensor>& tensors) {
  for (const PlainTensor& tensor : tensors) {
    for (const float value : tensor.values) {
      if (std::isnan(value)) return true;
    }
  }
  return false;
}

// Where a number has an effect, a NaN in its place must be seen, or refused.
std::string hides_nan(std::vector<float>& values, const std::string& what,
                      const std::function<std::vector<PlainTensor>()>& pass) {
  const size_t most = values.size() > 5000 ? 3 : 16;
  for (size_t i = 0; i < std::min(values.size(), most); ++i) {
    float& value = values[values.size() <= most ? i : i * values.size() / most];
    const float kept_value = value;
    const std::vector<PlainTensor> usual = pass();
    bool matters = false;
    for (const float change : {16.0F, -16.0F}) {
      value = kept_value + change;
      try {
        matters |= !differ("", pass(), usual).empty();
      } catch (const Error&) {
      }
    }
    value = NAN;
    bool seen = !matters;
    try {
      seen = seen || any_nan(pass());
    } catch (const Error&) {
      seen = true;
    }
    value = kept_value;
    if (!seen) {
      return fmt::format("a NaN in {} (element {}) does not reach a result", what,
                         &value - values.data());
    }
  }
  return "";
}

Outcome passes_nan_on(const Subject& subject, const Case& one) {
  if (subject.has(TANDEM_METRIC)) return not_applicable();
  LayerRun run(one.setup, subject.registry, subject.device);
  run.tolerate_violations();
  LayerSetup& setup = run.setup();
  const auto forward = [&] { return run.forward(); };
  for (size_t i = 0; i < setup.inputs.size() && !run.output_shapes().empty(); ++i) {
    if (!one.plain[i] || input_role(subject.type, i) == TANDEM_INPUT_NON_DIFFERENTIABLE) continue;
    const std::string hidden =
        hides_nan(setup.inputs[i].values, fmt::format("input {}", i), forward);
    if (!hidden.empty()) return broken(hidden);
  }
  const std::vector<tandem_weight> declared = run.declared_weights();
  for (size_t i = 0; i < setup.weights.size(); ++i) {
    if (declared[i].kind == TANDEM_STATE) continue;
    const std::string hidden =
        hides_nan(setup.weights[i].values, fmt::format("weight '{}'", declared[i].name), forward);
    if (!hidden.empty()) return broken(hidden);
  }
  if (!wants_data(subject, setup)) return kept();
  std::vector<PlainTensor> factors = factors_of(run);
  static_cast<void>(run.forward());
  for (size_t i = 0; i < factors.size(); ++i) {
    const std::string hidden =
        hides_nan(factors[i].values, fmt::format("the gradient of output {}", i),
                  [&] { return run.backward_data(factors); });
    if (!hidden.empty()) return broken(hidden);
  }
  return kept();
}

// ---- Growth

struct Held {
  int64_t bytes, files, threads;
};
int64_t entries(const char* folder) {
  int64_t count = 0;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    static_cast<void>(entry);
    ++count;
  }
  return count;
}
Held held_now() {
  const struct mallinfo2 info = mallinfo2();
  return {static_cast<int64_t>(info.uordblks + info.hblkhd), entries("/proc/self/fd"),
          entries("/proc/self/task")};
}

Outcome holds_no_more_each_time(const Subject& subject, const Case& one) {
  if (element_count(one.setup.inputs.empty() ? Shape{1, 1, 1, 1} : one.setup.inputs[0].shape) >
      1000) {
    return not_applicable();
  }
  constexpr int64_t times = 40;
  const auto use = [&] { static_cast<void>(results_of(subject, one.setup)); };
  LayerRun run(one.setup, subject.registry, subject.device);
  run.tolerate_violations();
  const std::vector<PlainTensor> factors = factors_of(run);
  const auto pass = [&] { static_cast<void>(pass_all(subject, run, factors)); };
  const auto grows = [&](const char* what, const auto& body) -> std::string {
    for (int64_t i = 0; i < times; ++i) body();
    // What a library keeps once grows in one of two rounds at most.
    Held least{INT64_MAX, INT64_MAX, INT64_MAX};
    for (int round = 0; round < 3; ++round) {
      const Held before = held_now();
      for (int64_t i = 0; i < times; ++i) body();
      const Held after = held_now();
      least = {std::min(least.bytes, after.bytes - before.bytes),
               std::min(least.files, after.files - before.files),
               std::min(least.threads, after.threads - before.threads)};
    }
    if (least.bytes >= 16 * times) {
      return fmt::format("{} bytes more are allocated {}", least.bytes / times, what);
    }
    if (least.files >= times) return fmt::format("a file stays open {}", what);
    if (least.threads >= times) return fmt::format("a thread stays {}", what);
    return "";
  };
  const std::string in_passes = grows("each time its passes run", pass);
  if (!in_passes.empty()) return broken(in_passes);
  return kept_unless(grows("each time it is prepared and released", use));
}

}  // namespace

const std::vector<Promise>& promises() {
  static const std::vector<Promise> all{
      {"declarations", "shapes, traits, weights, cost and kernel fit each other", &declares},
      {"memory", "only outputs and gradients are written, within their bounds", &stays_in_memory},
      {"overwrite", "every element is written, whatever memory held before", &overwrites},
      {"accumulate", "weight gradients are added to earlier ones on request", &accumulates},
      {"input gradients", "backward_data is the derivative of forward", &check_input_gradients},
      {"weight gradients", "backward_weights is the derivative of forward",
       &check_weight_gradients},
      {"reads", "backward reads only what the traits name", &reads_only_what_its_traits_name},
      {"skip", "gradients that are not wanted or absent may be null", &skips_what_is_not_wanted},
      {"flags", "results do not depend on which gradients are wanted", &needs_no_flag},
      {"rows", "a row depends on the same row of the inputs only", &rows_are_independent},
      {"parts", "parts of the batch give what the whole batch gives", &parts_of_the_batch},
      {"statistics", "statistics of parts merge to those of the batch", &statistics_of_parts},
      {"bits", "same bits each time, same values with 1, 2 and 3 threads", &repeats_its_bits},
      {"random", "random numbers come from seed, step, layer and position", &draws_by_position},
      {"nan", "a NaN is passed on", &passes_nan_on},
      {"in place", "same bits if output 0 has the memory of input 0", &runs_in_place},
      {"layouts", "every offered layout gives the same values", &equal_in_every_layout},
      {"dtypes", "every offered dtype gives the same values", &equal_in_every_dtype},
      {"slices", "a slice of the channels is that part of the whole", &slices_are_parts},
      {"samples", "rows are divided by the normaliser, and counted if they hold a sample",
       &counts_samples},
      {"loss weight", "a loss multiplies its gradient by the loss weight",
       &scales_with_the_loss_weight},
      {"growth", "memory, files and threads do not grow", &holds_no_more_each_time},
  };
  return all;
}

}  // namespace tandem::checker
