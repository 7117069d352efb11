// The promises that a layer type and its kernel make to the host by plugins/abi.h, each with a
// function that tries to break it, and what came of that. Some of the lines only inform.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/check/cases/subject.h"

namespace tandem::checker {

struct Outcome {
  // A note is no verdict: a figure, or the reason why something is not checked. What is left out is
  // not checked as the type or the user says so.
  enum class Verdict { kept, broken, not_applicable, note, left_out };
  Verdict verdict = Verdict::kept;
  std::string detail;                       // how it is broken; what the note says; why left out
  std::map<std::string, double> figures{};  // of a note, by name
};

struct Promise {
  const char* name;  // "accumulate"
  const char* text;  // one line
  // Throws Error if a pass fails.
  Outcome (*check)(const Subject&, const Case&);
  // Tried before the first step of training, too: a layer that breaks it trains other weights.
  bool before_training = true;
  // Two runs are compared: of a layer that gives something else each time this says nothing.
  bool compares = true;
};

// The name of the promise that a layer gives the same each time.
inline constexpr const char* repeats = "repeats";

inline Outcome kept() {
  return {};
}
inline Outcome broken(std::string detail) {
  return {Outcome::Verdict::broken, std::move(detail)};
}
inline Outcome not_applicable() {
  return {Outcome::Verdict::not_applicable, ""};
}
inline Outcome note(std::string detail) {
  return {Outcome::Verdict::note, std::move(detail)};
}
inline constexpr const char* left_out_by_user = "as asked for";
inline Outcome left_out(std::string reason) {
  return {Outcome::Verdict::left_out, std::move(reason)};
}
// `differs`: how results differ, "" if they do not; `when`: in which case.
inline Outcome kept_unless(const std::string& differs, const std::string& when = "") {
  return differs.empty() ? kept() : broken(differs + when);
}

// All, in the order of the checks.
[[nodiscard]] const std::vector<Promise>& promises();

// What a layer type declares: shapes, traits, weights and cost, beside what its kernel has.
Outcome declares(const Subject& subject, const Case& one);

// What a kernel does to memory: what it writes, what it must not write, and what it may read.
Outcome stays_in_memory(const Subject& subject, const Case& one);
Outcome overwrites(const Subject& subject, const Case& one);
Outcome reads_only_what_its_traits_name(const Subject& subject, const Case& one);
Outcome accumulates(const Subject& subject, const Case& one);
Outcome gives_both_in_one_call(const Subject& subject, const Case& one);
Outcome takes_a_tensor_twice(const Subject& subject, const Case& one);
Outcome skips_what_is_not_wanted(const Subject& subject, const Case& one);

// Gradients of a kernel's backward passes against finite differences of its forward pass.
Outcome check_input_gradients(const Subject& subject, const Case& one);
Outcome check_weight_gradients(const Subject& subject, const Case& one);

// The same values whatever the form of the binding: flags, memory in place, layouts, dtypes,
// slices.
Outcome needs_no_flag(const Subject& subject, const Case& one);
Outcome equal_with_defaults_written(const Subject& subject, const Case& one);
Outcome runs_in_place(const Subject& subject, const Case& one);
Outcome equal_in_every_layout(const Subject& subject, const Case& one);
Outcome equal_in_every_dtype(const Subject& subject, const Case& one);
Outcome slices_are_parts(const Subject& subject, const Case& one);

// Rows of a batch: each on its own, in parts on several devices, and their merged statistics.
Outcome rows_are_independent(const Subject& subject, const Case& one);
Outcome parts_of_the_batch(const Subject& subject, const Case& one);
Outcome statistics_of_parts(const Subject& subject, const Case& one);

// The same result again: equal bits, and random numbers by position.
Outcome gives_the_same_twice(const Subject& subject, const Case& one);
Outcome repeats_its_bits(const Subject& subject, const Case& one);
Outcome draws_by_position(const Subject& subject, const Case& one);

// Several kernels of the layer; a kernel for testing; one that has not run forward.
Outcome works_beside_others(const Subject& subject, const Case& one);
Outcome tests_as_it_trains(const Subject& subject, const Case& one);
Outcome needs_no_forward_of_its_own(const Subject& subject, const Case& one);

// Results are finite where the formula is.
Outcome stays_finite(const Subject& subject, const Case& one);

// A NaN that goes in comes out.
Outcome passes_nan_on(const Subject& subject, const Case& one);

// What a kernel computes for the layers around it: a sum with another layer's output, and ReLUs
// after and before the layer. The results must be those of layers of their own.
Outcome equal_with_fusions(const Subject& subject, const Case& one);
// What a host may compute in place of the layer: the activation that the type names.
Outcome computes_its_activation(const Subject& subject, const Case& one);

// Losses and metrics: which rows count, and by what they are multiplied.
Outcome counts_samples(const Subject& subject, const Case& one);
Outcome keeps_labels_in_their_row(const Subject& subject, const Case& one);
Outcome scales_with_the_loss_weight(const Subject& subject, const Case& one);
// The case with labels below an integer parameter, where its forward pass refuses those of the case
// and takes these: the parameter is a number of classes. Else empty.
[[nodiscard]] std::optional<Case> with_fewer_classes(const Subject& subject, const Case& one);

// Memory, files and threads of the process while a layer is used again and again.
Outcome holds_no_more_each_time(const Subject& subject, const Case& one);

// Runs the passes of a layer in graphs that a stream captures (tandem_capture), on each kind of
// device for which the layer has a kernel and whose streams can be captured. The outcome is a note
// where the kernel refuses, which it may, or where there is no such device.
Outcome equal_in_a_capture(const Subject& subject, const Case& one);

// What the type declares of arithmetic and memory traffic, beside the time of its passes in three
// sizes of the batch.
Outcome costs_what_it_declares(const Subject& subject, const Case& one);

// Notes how long the passes of a layer take for each element, beside a copy. It runs the largest
// case, with its rows repeated so often that a call is short beside its work.
Outcome measures_time(const Subject& subject, const Case& one);

}  // namespace tandem::checker
