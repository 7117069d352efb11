#include <memory>

#include "core/check/promises/passes.h"

namespace tandem::checker {

namespace {

LayerSetup part_of(const Case& one, int64_t begin, int64_t end) {
  const LayerSetup& whole = one.setup;
  LayerSetup part = whole;
  for (PlainTensor& input : part.inputs) {
    if (input.shape.n == one.rows()) input = first_axis_of(input, begin, end);
  }
  if (!whole.row_labels.empty()) {
    part.row_labels = {whole.row_labels.begin() + begin, whole.row_labels.begin() + end};
  }
  part.batch_begin = whole.batch_begin + begin;
  part.batch_size = whole.batch_begin + one.rows();
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

// The factors of the outputs of one part of the batch.
std::vector<PlainTensor> factors_of_part(const LayerRun& part, std::vector<PlainTensor> factors,
                                         int64_t begin, int64_t end) {
  // A loss or metric has outputs without rows, too: those have the shape that they have of all.
  for (size_t i = 0; i < factors.size(); ++i) {
    if (!equal(factors[i].shape, part.output_shapes()[i])) {
      factors[i] = first_axis_of(factors[i], begin, end);
    }
  }
  return factors;
}

// Why the results of two parts are not those of the whole; "" if they are.
std::string differ_together(const Subject& subject, const Case& one, const Results (&parts)[2],
                            const Results& whole) {
  std::string differs;
  if (subject.has(TANDEM_LOSS | TANDEM_METRIC)) {
    const std::vector<PlainTensor> sum = added({parts[0].outputs[0]}, {parts[1].outputs[0]});
    differs = differ("the sum of output", sum, {whole.outputs[0]}, rounding);
  } else {
    differs = differ("output", joined(parts[0].outputs, parts[1].outputs), whole.outputs, rounding);
  }
  if (!differs.empty()) return differs;
  std::vector<PlainTensor> gradients = joined(parts[0].input_gradients, parts[1].input_gradients);
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (one.setup.inputs[i].shape.n != one.rows()) gradients[i] = whole.input_gradients[i];
  }
  differs = differ("the gradient of input", gradients, whole.input_gradients, rounding);
  if (!differs.empty()) return differs;
  differs =
      differ("the gradient of weight", added(parts[0].weight_gradients, parts[1].weight_gradients),
             whole.weight_gradients, 10 * rounding);
  // A state must be the same on every device.
  for (const Results& part : parts) {
    if (differs.empty())
      differs = differ("the state after the pass, weight", part.weights, whole.weights, rounding);
  }
  return differs;
}

}  // namespace

Outcome rows_are_independent(const Subject& subject, const Case& one) {
  const int64_t n = one.rows();
  if (!subject.has(TANDEM_PER_SAMPLE) || n < 2) return not_applicable();
  const Results before = results_of(subject, one.setup);
  for (const int64_t changed : {int64_t{0}, n - 1}) {
    LayerSetup setup = one.setup;
    change_row(one, setup, changed, [](float& value) { value = 0.3F + 1.7F * value; });
    const Results after = results_of(subject, setup);
    std::string mixed;
    if (!subject.has(TANDEM_LOSS | TANDEM_METRIC)) {
      mixed = other_rows(before.outputs, after.outputs, "output", n, changed);
    }
    if (mixed.empty()) {
      mixed = other_rows(before.input_gradients, after.input_gradients, "the gradient of input", n,
                         changed);
    }
    if (!mixed.empty()) return broken(mixed);
  }
  return kept();
}

// Devices have parts of the batch, and micro-batches come one after the other.
Outcome parts_of_the_batch(const Subject& subject, const Case& one) {
  const int64_t n = one.rows(), cut = n / 2;
  if (!subject.has(TANDEM_PER_SAMPLE) || n < 2) return not_applicable();
  Trial whole(subject, one.setup);
  const Results expected = whole.all_passes();
  for (const bool later : {false, true}) {  // a later micro-batch instead of another device
    LayerSetup setups[2] = {part_of(one, 0, cut), part_of(one, cut, n)};
    if (later) {
      setups[1].batch_begin = one.setup.batch_begin;
      setups[1].step.first_row = int32_t(cut);
    }
    Results parts[2];
    for (int i = 0; i < 2; ++i) {
      Trial run(subject, setups[i]);
      parts[i] =
          run.all_passes(factors_of_part(run, whole.factors(), i == 0 ? 0 : cut, i == 0 ? cut : n));
    }
    const std::string differs = differ_together(subject, one, parts, expected);
    if (!differs.empty()) {
      return broken(fmt::format("{} if rows {} to {} are {}", differs, cut, n - 1,
                                later ? "a micro-batch of their own (tandem_step.first_row)"
                                      : "on another device (batch_begin)"));
    }
  }
  return kept();
}

namespace {

// How gradients of the first rows differ where the statistics of the others come from another
// device. `whole` is of all rows, with the results `all`; the first part has run forward.
std::string backward_of_part(Trial& first, Trial& second, const Trial& whole, const Results& all,
                             int64_t rows) {
  if (first.statistics_floats().backward == 0 || !first.wants_data()) return "";
  const int64_t n = whole.factors()[0].shape.n;
  second.forward({first.forward_statistics()});
  const std::vector<float> others =
      second.backward_statistics(factors_of_part(second, whole.factors(), rows, n));
  first.forward({second.forward_statistics()});
  const std::vector<PlainTensor> gradients =
      first.backward_data(factors_of_part(first, whole.factors(), 0, rows), {others});
  for (size_t i = 0; i < gradients.size(); ++i) {
    const PlainTensor& expected = all.input_gradients[i];
    if (gradients[i].values.empty() || expected.shape.n != n) continue;
    if (difference(gradients[i].values, first_axis_of(expected, 0, rows).values) > 10 * rounding) {
      return fmt::format("the gradient of input {} differs", i);
    }
  }
  return "";
}

// How outputs of four parts differ where each merges the statistics of the three others; "" if they
// do not, or if there are fewer rows.
std::string differ_in_four(const Subject& subject, const Case& one, const Results& all) {
  constexpr int64_t parts = 4;
  const int64_t n = one.rows();
  if (n < parts) return "";
  std::vector<std::unique_ptr<Trial>> trials;
  OtherParts statistics;
  for (int64_t part = 0; part < parts; ++part) {
    trials.push_back(
        std::make_unique<Trial>(subject, part_of(one, part * n / parts, (part + 1) * n / parts)));
    statistics.push_back(trials.back()->forward_statistics());
  }
  std::vector<PlainTensor> sum;
  for (int64_t part = 0; part < parts; ++part) {
    OtherParts others = statistics;
    others.erase(others.begin() + part);
    const std::vector<PlainTensor> outputs = trials[size_t(part)]->forward(others);
    if (subject.has(TANDEM_LOSS | TANDEM_METRIC)) {
      sum = sum.empty() ? std::vector<PlainTensor>{outputs[0]} : added(sum, {outputs[0]});
      continue;
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      const PlainTensor expected =
          first_axis_of(all.outputs[i], part * n / parts, (part + 1) * n / parts);
      if (difference(outputs[i].values, expected.values) > rounding) {
        return fmt::format("output {} differs", i);
      }
    }
  }
  return sum.empty() ? "" : differ("the sum of output", sum, {all.outputs[0]}, rounding);
}

}  // namespace

Outcome statistics_of_parts(const Subject& subject, const Case& one) {
  const int64_t n = one.rows();
  if (!subject.has(TANDEM_BATCH_STATISTICS) || n < 2) return not_applicable();
  Trial whole(subject, one.setup);
  if (whole.statistics_floats().forward == 0) return not_applicable();
  const Results all = whole.all_passes();
  const std::string in_four = differ_in_four(subject, one, all);
  if (!in_four.empty()) {
    return broken(in_four + " if the batch is on four devices, whose statistics are merged");
  }
  const std::vector<PlainTensor>& expected = all.outputs;
  Trial first(subject, part_of(one, 0, n / 2)), second(subject, part_of(one, n / 2, n));
  const std::vector<PlainTensor> outputs = first.forward({second.forward_statistics()});
  const std::string states =
      differ("the state after the pass, weight", first.weights_after(), all.weights, rounding);
  if (!states.empty())
    return broken(states + " if the batch is on two devices, whose statistics are merged");
  if (subject.has(TANDEM_LOSS | TANDEM_METRIC)) {
    const std::vector<PlainTensor> others = second.forward({first.forward_statistics()});
    return kept_unless(
        differ("the sum of output", added({outputs[0]}, {others[0]}), {expected[0]}, rounding),
        " if the batch is on two devices, whose statistics are merged");
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (difference(outputs[i].values, first_axis_of(expected[i], 0, n / 2).values) <= rounding) {
      continue;
    }
    return broken(fmt::format(
        "output {} differs if the batch is on two devices, whose statistics are merged", i));
  }
  return kept_unless(backward_of_part(first, second, whole, all, n / 2),
                     " if the batch is on two devices, whose statistics are added");
}

}  // namespace tandem::checker
