// Several kernels of a layer at the same time: on the devices of a run, and on one device for
// training and testing.
#include <link.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <thread>

#include "core/check/promises/passes.h"

namespace tandem::checker {

namespace {

// The case, the same with other values, and the same for testing.
std::vector<LayerSetup> setups_of(const Case& one) {
  std::vector<LayerSetup> setups(3, one.setup);
  for (size_t i = 0; i < one.plain.size(); ++i) {
    if (!one.plain[i]) continue;
    for (float& value : setups[1].inputs[i].values) value *= 0.75F;
  }
  setups[2].phase = TANDEM_TEST;
  setups[2].flags = 0;
  return setups;
}

// All forward passes, then all backward passes: the one kernel waits while the others run.
std::string differ_in_turns(const Subject& subject, const std::vector<LayerSetup>& setups,
                            const std::vector<Results>& alone) {
  std::vector<std::unique_ptr<Trial>> trials;
  for (const LayerSetup& setup : setups) trials.push_back(std::make_unique<Trial>(subject, setup));
  std::vector<Results> together(setups.size());
  for (size_t i = 0; i < setups.size(); ++i) together[i].outputs = trials[i]->forward();
  for (size_t i = 0; i < setups.size(); ++i) {
    Trial& trial = *trials[i];
    if (setups[i].phase != TANDEM_TRAIN) continue;
    if (trial.wants_data()) together[i].input_gradients = trial.backward_data(trial.factors());
  }
  for (size_t i = 0; i < setups.size(); ++i) {
    Trial& trial = *trials[i];
    if (setups[i].phase != TANDEM_TRAIN || !trial.wants_weights()) continue;
    together[i].weight_gradients = trial.backward_weights(trial.factors());
  }
  for (size_t i = 0; i < setups.size(); ++i) {
    const std::string differs = differ(together[i], alone[i]);
    if (!differs.empty()) return differs;
  }
  return "";
}

// Each on a device of its own, in a thread of its own.
std::string differ_in_threads(const Subject& subject, const std::vector<LayerSetup>& setups,
                              const std::vector<Results>& alone) {
  constexpr int repeats = 12;
  const std::vector<BackendDevice*> devices =
      subject.devices.more_of(subject.device.kind(), setups.size());
  std::vector<std::unique_ptr<Subject>> subjects;
  std::vector<std::unique_ptr<Trial>> trials;
  for (size_t i = 0; i < setups.size(); ++i) {
    subjects.push_back(std::make_unique<Subject>(
        Subject{subject.registry, subject.devices, *devices[i], subject.type, subject.kernel, {}}));
    trials.push_back(std::make_unique<Trial>(*subjects.back(), setups[i]));
  }
  std::vector<std::string> differs(setups.size());
  {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < setups.size(); ++i) {
      threads.emplace_back([&, i] {
        try {
          for (int n = 0; n < repeats && differs[i].empty(); ++n) {
            differs[i] = differ(trials[i]->all_passes(), alone[i]);
          }
        } catch (const std::exception& failure) {
          differs[i] = failure.what();
        }
      });
    }
  }
  for (const std::string& one : differs) {
    if (!one.empty()) return one;
  }
  return "";
}

// The writable memory of the loaded module with this address: its static variables.
std::vector<unsigned char> static_memory_of(const void* address) {
  struct Search {
    uintptr_t address;
    std::vector<unsigned char> bytes;
  } search{reinterpret_cast<uintptr_t>(address), {}};
  const auto visit = [](dl_phdr_info* module, size_t, void* data) {
    auto& wanted = *static_cast<Search*>(data);
    const auto begin_of = [&](const ElfW(Phdr) & part) { return module->dlpi_addr + part.p_vaddr; };
    const ElfW(Phdr)* const parts = module->dlpi_phdr;
    const auto count = module->dlpi_phnum;
    const bool is_it = std::any_of(parts, parts + count, [&](const ElfW(Phdr) & part) {
      return part.p_type == PT_LOAD && wanted.address >= begin_of(part) &&
             wanted.address < begin_of(part) + part.p_memsz;
    });
    if (!is_it) return 0;
    for (const ElfW(Phdr)* part = parts; part != parts + count; ++part) {
      if (part->p_type != PT_LOAD || (part->p_flags & PF_W) == 0) continue;
      const auto* begin = reinterpret_cast<const unsigned char*>(begin_of(*part));
      wanted.bytes.insert(wanted.bytes.end(), begin, begin + part->p_memsz);
    }
    return 1;
  };
  dl_iterate_phdr(visit, &search);
  return std::move(search.bytes);
}

// What is filled once, such as a table or a guard of a static variable, is there after the first
// passes. What then differs after passes of other values is written in each pass.
bool changes_static_memory(const Subject& subject, const std::vector<LayerSetup>& setups) {
#if defined(__SANITIZE_ADDRESS__)
  return false;  // between variables there is memory that must not be read
#endif
  const auto address = reinterpret_cast<const void*>(subject.kernel.forward);
  Trial first(subject, setups[0]), other(subject, setups[1]);
  std::vector<unsigned char> after_first, after_other;
  for (int time = 0; time < 2; ++time) {
    first.all_passes();
    after_first = static_memory_of(address);
    other.all_passes();
    after_other = static_memory_of(address);
  }
  return after_first != after_other;
}

// A layer that drops elements, and multiplies the others by one factor: what is dropped must be
// made up for by the factor, so that testing, which drops none, gives the mean. "" if it is so, or
// if the layer draws in another way.
std::string changes_mean(const Subject& subject, const LayerSetup& testing, const LayerSetup& one) {
  constexpr int steps = 150;
  constexpr double enough = 500;
  const std::vector<PlainTensor> expected = results_of(subject, testing).outputs;
  double drawn = 0, kept_elements = 0, factor = 0;
  for (int step = 0; step < steps; ++step) {
    LayerSetup setup = one;
    setup.step.step += uint64_t(step);
    const std::vector<PlainTensor> outputs = Trial(subject, setup).forward();
    for (size_t k = 0; k < outputs[0].values.size(); ++k) {
      const double usual = expected[0].values[k], now = outputs[0].values[k];
      if (std::abs(usual) < 0.05) continue;
      ++drawn;
      if (now == 0) continue;
      if (factor == 0) factor = now / usual;
      if (!(std::abs(now / usual - factor) < 1e-3 * std::abs(factor))) return "";
      ++kept_elements;
    }
  }
  if (drawn < enough || kept_elements == 0) return "";
  const double draws =
      steps * static_cast<double>(one.inputs[0].shape.n);  // of whole rows, at least
  const double share = kept_elements / drawn,
               error = std::abs(factor) * std::sqrt(share * (1 - share) / draws);
  if (std::abs(share * factor - 1) <= 5 * error + 0.01) return "";
  return fmt::format(
      "in training {:.3g} of the elements are kept and multiplied by {:.3g}, so their mean is not "
      "that of testing (a type that tests otherwise on purpose says TANDEM_TESTS_OTHERWISE)",
      share, factor);
}

// Of a type that says so, whose results in testing are compared with nothing else.
Outcome tests_the_same_each_time(const Subject& subject, const LayerSetup& testing) {
  LayerSetup later = testing;
  later.step.seed += 1;
  later.step.step += 1;
  const std::string differs =
      differ("output", results_of(subject, later).outputs, results_of(subject, testing).outputs);
  return differs.empty() ? left_out(
                               "testing is not compared with training, as the type says "
                               "TANDEM_TESTS_OTHERWISE")
                         : broken(differs + " with seed and step in testing, which draws nothing");
}

}  // namespace

Outcome works_beside_others(const Subject& subject, const Case& one) {
  const std::vector<LayerSetup> setups = setups_of(one);
  std::vector<Results> alone;
  for (const LayerSetup& setup : setups) alone.push_back(results_of(subject, setup));
  std::string differs = differ_in_turns(subject, setups, alone);
  if (!differs.empty()) {
    return broken(differs + " if other kernels of the layer run between its passes");
  }
  constexpr int64_t max_elements = 5000;
  const bool is_small =
      one.setup.inputs.empty() || element_count(one.setup.inputs[0].shape) <= max_elements;
  if (!is_small || subject.device.has_own_memory()) return kept();
  differs = differ_in_threads(subject, setups, alone);
  if (!differs.empty()) {
    return broken(differs + " if other kernels of the layer run at the same time");
  }
  if (!changes_static_memory(subject, setups)) return kept();
  return note(
      "static variables of its module change with the values of a pass: all kernels share them, "
      "at the same time, too");
}

Outcome tests_as_it_trains(const Subject& subject, const Case& one) {
  const Trial training(subject, one.setup);
  for (const tandem_weight& weight : training.declared_weights()) {
    if (weight.kind == TANDEM_STATE) return not_applicable();
  }
  if (subject.has(TANDEM_BATCH_STATISTICS)) return not_applicable();
  LayerSetup testing = one.setup;
  testing.phase = TANDEM_TEST;
  testing.flags = 0;
  if (subject.has(TANDEM_TESTS_OTHERWISE)) return tests_the_same_each_time(subject, testing);
  if (subject.has(TANDEM_RANDOM)) {
    const bool is_plain = !subject.has(TANDEM_LOSS | TANDEM_METRIC) &&
                          element_count(one.setup.inputs[0].shape) < 5000;
    return is_plain ? kept_unless(changes_mean(subject, testing, one.setup)) : not_applicable();
  }
  return kept_unless(
      differ("output", results_of(subject, testing).outputs, results_of(subject, one.setup).outputs,
             rounding),
      " in testing, but the type has no TANDEM_RANDOM, TANDEM_BATCH_STATISTICS or state (one that "
      "tests otherwise on purpose says TANDEM_TESTS_OTHERWISE)");
}

Outcome needs_no_forward_of_its_own(const Subject& subject, const Case& one) {
  Trial first(subject, one.setup), fresh(subject, one.setup);
  if (!subject.has(TANDEM_SAVES_NOTHING) || one.setup.flags == 0) return not_applicable();
  Results expected = first.all_passes(), results = expected;
  fresh.take_outputs_of(first);
  if (fresh.wants_data()) results.input_gradients = fresh.backward_data(fresh.factors());
  if (fresh.wants_weights()) {
    results.weight_gradients = fresh.backward_weights(fresh.factors());
  }
  return kept_unless(differ(results, expected),
                     " if another kernel ran forward, but the type says TANDEM_SAVES_NOTHING");
}

}  // namespace tandem::checker
