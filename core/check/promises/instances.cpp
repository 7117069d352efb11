// Several kernels of a layer: at the same time, in between, and before.
#include <link.h>

#include <algorithm>
#include <barrier>
#include <cstdint>
#include <optional>
#include <thread>

#include "core/check/layer/halting_memory.h"
#include "core/check/promises/fresh_process.h"
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

// A layer on several devices, which run at the same time.
struct OnDevices {
  OnDevices(const Subject& subject, const std::vector<LayerSetup>& setups) {
    const std::vector<BackendDevice*> devices =
        subject.devices.more_of(subject.device.kind(), setups.size());
    for (size_t i = 0; i < setups.size(); ++i) {
      subjects.push_back(std::make_unique<Subject>(Subject{
          subject.registry, subject.devices, *devices[i], subject.type, subject.kernel, {}}));
      trials.push_back(std::make_unique<Trial>(*subjects.back(), setups[i]));
    }
  }
  std::vector<std::unique_ptr<Subject>> subjects;
  std::vector<std::unique_ptr<Trial>> trials;
};

// Each on a device of its own, in a thread of its own. All passes begin together.
std::string differ_in_threads(OnDevices& on, const std::vector<Results>& alone, int repeats) {
  const size_t count = alone.size();
  std::vector<std::string> differs(count);
  std::barrier begin(static_cast<std::ptrdiff_t>(count));
  {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < count; ++i) {
      threads.emplace_back([&, i] {
        for (int n = 0; n < repeats && differs[i].empty(); ++n) {
          begin.arrive_and_wait();
          try {
            differs[i] = differ(on.trials[i]->all_passes(), alone[i]);
          } catch (const std::exception& failure) {
            differs[i] = failure.what();
          }
        }
        begin.arrive_and_drop();
      });
    }
  }
  for (const std::string& one : differs) {
    if (!one.empty()) return one;
  }
  return "";
}

std::vector<LayerSetup> on_one_thread(std::vector<LayerSetup> setups) {
  for (LayerSetup& setup : setups) setup.threads = 1;
  return setups;
}

// One kernel stops in the middle of a pass, where it first touches the second half of a tensor,
// and another one runs all of its passes. Each on one thread, that of its stream.
class Halted {
 public:
  Halted(const Subject& subject, const std::vector<LayerSetup>& setups)
      : on_(subject, on_one_thread({setups[0], setups[1]})),
        first_(*on_.trials[0]),
        other_(*on_.trials[1]),
        alone_{first_.all_passes(), other_.all_passes()} {}

  std::string differ_somewhere() {
    using Halt = LayerRun::Halt;
    const size_t inputs = std::min<size_t>(first_.setup().inputs.size(), 3);
    std::string differs = at(Halt::output, 0, Pass::forward);
    for (size_t i = 0; i < inputs && differs.empty(); ++i) {
      differs = at(Halt::input, i, Pass::forward);
    }
    for (const Pass pass : {Pass::data, Pass::weights}) {
      const bool is_there = pass == Pass::data ? first_.wants_data() : first_.wants_weights();
      if (!is_there || !differs.empty()) continue;
      differs = at(Halt::output_gradient, 0, pass);
      for (size_t i = 0; i < inputs && differs.empty(); ++i) {
        differs = at(Halt::input, i, pass);
        if (differs.empty() && pass == Pass::data) differs = at(Halt::input_gradient, i, pass);
      }
    }
    return differs;
  }

 private:
  enum class Pass { forward, data, weights };

  std::string at(LayerRun::Halt kind, size_t index, Pass pass) {
    std::string of_other;
    const auto meanwhile = [&] {
      try {
        of_other = differ(other_.all_passes(), alone_[1]);
      } catch (const std::exception& failure) {
        of_other = failure.what();
      }
    };
    if (pass != Pass::forward) first_.forward();
    first_.halt_at(kind, index, meanwhile);
    std::string differs;
    try {
      differs = differ(results_of(pass), alone_[0]);
      first_.halt_at(LayerRun::Halt::nowhere, 0, {});
    } catch (const Error&) {
      // A system call that touches the memory before the pass does, as write(), fails.
      first_.halt_at(LayerRun::Halt::nowhere, 0, {});
      if (pass != Pass::forward) first_.forward();
      differs = differ(results_of(pass), alone_[0]);
    }
    return differs.empty() ? of_other : differs;
  }
  Results results_of(Pass pass) {
    Results results = alone_[0];
    if (pass == Pass::forward) results.outputs = first_.forward();
    if (pass == Pass::data) results.input_gradients = first_.backward_data(first_.factors());
    if (pass == Pass::weights) {
      results.weight_gradients = first_.backward_weights(first_.factors());
    }
    return results;
  }

  OnDevices on_;
  Trial &first_, &other_;
  Results alone_[2];
};

// The first cases that have another shape than those before them: what a kernel keeps of the first
// use in the process is wrong for them.
bool is_compared_with_fresh(const Subject& subject, const Case& one) {
  constexpr size_t most = 5;
  std::vector<const Case*> distinct;
  const auto has_shapes_of = [](const Case& a, const Case& b) {
    return std::equal(
        a.setup.inputs.begin(), a.setup.inputs.end(), b.setup.inputs.begin(), b.setup.inputs.end(),
        [](const PlainTensor& x, const PlainTensor& y) { return equal(x.shape, y.shape); });
  };
  for (const Case& other : subject.cases) {
    const bool is_new = std::none_of(distinct.begin(), distinct.end(), [&](const Case* before) {
      return has_shapes_of(*before, other);
    });
    if (is_new) distinct.push_back(&other);
    if (&other == &one) return is_new && distinct.size() <= most;
  }
  return false;
}

// The same with half of the pixels, the channels or the rows: of the first that there are several.
LayerSetup with_half(const Case& one) {
  LayerSetup setup = one.setup;
  const Shape first = setup.inputs[0].shape;
  for (PlainTensor& input : setup.inputs) {
    const Shape s = input.shape;
    if (first.h * first.w > 1 && s.h == first.h && s.w == first.w) {
      input = random_tensor({s.n, s.c, (s.h + 1) / 2, (s.w + 1) / 2}, 7);
    } else if (first.h * first.w == 1 && first.c > 1 && s.c == first.c) {
      input = channels_of(input, 0, (s.c + 1) / 2);
    } else if (first.c * first.h * first.w == 1 && s.n == first.n) {
      input = first_axis_of(input, 0, (s.n + 1) / 2);
    }
  }
  return setup;
}

// In a process in which the shape is the first, and in one in which another one came before: that
// of this process, or half of it.
std::string differs_from_fresh(const Subject& subject, const Case& one, const Results& here) {
  if (subject.fresh == nullptr || one.setup.inputs.empty() ||
      !is_compared_with_fresh(subject, one)) {
    return "";
  }
  const std::string kind = subject.device.kind();
  const std::optional<Results> first = subject.fresh->results_of(one.setup, kind);
  if (!first.has_value()) return "";
  const std::string differs = differ(here, *first, rounding);
  if (!differs.empty()) return differs;
  const LayerSetup half = with_half(one);
  const std::optional<Results> second = subject.fresh->results_of(one.setup, kind, &half);
  return second.has_value() ? differ(*second, *first, rounding) : "";
}

// Says why nothing was compared with a fresh process, where that is so.
Outcome kept_beside_others(const Subject& subject) {
  const std::string why =
      subject.fresh == nullptr ? "" : subject.fresh->why_silent(subject.type.name);
  return why.empty() ? kept() : note("not compared with a fresh process: " + why);
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

}  // namespace

Outcome works_beside_others(const Subject& subject, const Case& one) {
  const std::vector<LayerSetup> setups = setups_of(one);
  std::vector<Results> alone;
  for (const LayerSetup& setup : setups) alone.push_back(results_of(subject, setup));
  std::string differs = differ_in_turns(subject, setups, alone);
  if (!differs.empty()) {
    return broken(differs + " if other kernels of the layer run between its passes");
  }
  differs = differs_from_fresh(subject, one, alone[0]);
  if (!differs.empty()) {
    return broken(differs + " from that of a process in which no other shape came before");
  }
  if (subject.device.has_own_memory()) return kept_beside_others(subject);
  constexpr int64_t max_elements = 5000;
  const bool is_small =
      one.setup.inputs.empty() || element_count(one.setup.inputs[0].shape) <= max_elements;
  if (HaltingMemory::is_possible()) differs = Halted(subject, setups).differ_somewhere();
  OnDevices on(subject, setups);
  if (differs.empty()) differs = differ_in_threads(on, alone, is_small ? 12 : 3);
  if (!differs.empty()) {
    return broken(differs + " if other kernels of the layer run at the same time");
  }
  if (!is_small) return kept_beside_others(subject);
  if (!changes_static_memory(subject, setups)) return kept_beside_others(subject);
  return note(
      "static variables of its module change with the values of a pass: all kernels share them, "
      "at the same time, too");
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
