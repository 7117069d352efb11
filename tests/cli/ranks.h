// What tests of ranks on cpus and on GPUs share: how mpirun starts them, their fixture, and the
// jobs of every strategy, whose bits are those of one process with all devices.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/cli/program.h"

namespace tandem::test {

// A container may forbid processes to read each other's memory. MPI libraries leak.
inline const std::string environment_of_ranks =
    "ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0 OMPI_MCA_btl=^tcp "
    "OMPI_MCA_btl_vader_single_copy_mechanism=none ";

// Ranks outnumber cores.
inline std::string mpirun(int ranks) {
  return environment_of_ranks + "mpirun --allow-run-as-root --oversubscribe --bind-to none -n " +
         std::to_string(ranks);
}

// The reason why there are no ranks; "" where there are.
inline std::string no_mpi() {
#ifdef TANDEM_HAS_MPI
  return "";
#else
  return "built without MPI, or with ThreadSanitizer, for which MPI libraries are not built";
#endif
}

// Both files of a run's last checkpoint.
inline std::string checkpoint(const Desk& desk, const std::string& run) {
  return desk.read(run + "/last.safetensors") + desk.read(run + "/last.state.safetensors");
}

// Skips its tests where there are no ranks.
class Ranks : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = no_mpi(); !reason.empty()) GTEST_SKIP() << reason;
  }

  const std::string tiny =
      "train --net tiny.prototxt --data synthetic --data-option size=40 --batch 12 --seed 3 ";

  // Trains in the folder `name`; both files of its checkpoint.
  std::string trained(const Desk& desk, const std::string& name, const std::string& options,
                      int ranks) const {
    const Outcome outcome = desk.tandem(tiny + "--threads 1 --out " + name + " " + options,
                                        ranks > 1 ? mpirun(ranks) : "");
    EXPECT_EQ(outcome.code, 0) << options << " on " << ranks << " ranks\n"
                               << outcome.output << outcome.errors;
    return outcome.code == 0 ? checkpoint(desk, name) : name;
  }
};

struct Job {
  int ranks, devices;  // of each rank
  std::string options;
};

// `hybrid` and `asymmetric` are further options of these strategies.
inline std::vector<Job> jobs_of_every_strategy(const std::string& hybrid = "",
                                               const std::string& asymmetric = "") {
  return {{2, 1, "--strategy two_phase"},
          {3, 1, "--strategy sequential"},
          {2, 2, "--strategy layerwise --reduce ring"},
          {2, 1, "--strategy layerwise --reduce tree --solver-option iter_size=2"},
          {2, 2, "--strategy hybrid " + hybrid},
          {4, 1, "--strategy asymmetric " + asymmetric},
          {2, 1, "--strategy fc_parallel"},
          {2, 2, "--strategy mixed --divide all=2"},
          {2, 2, "--strategy two_phase --solver-type LARS --mixup 0.4"}};
}

// trained(name, options, ranks) trains in the folder `name` and gives its checkpoint;
// devices(count) names so many devices.
template <class Trained, class Devices>
void expect_bits_of_one_process(const std::vector<Job>& jobs, const Trained& trained,
                                const Devices& devices) {
  for (size_t i = 0; i < jobs.size(); ++i) {
    const Job& job = jobs[i];
    const std::string options = job.options + " --steps 4 --devices ",
                      name = "run" + std::to_string(i);
    EXPECT_TRUE(trained(name, options + devices(job.devices), job.ranks) ==
                trained(name + "alone", options + devices(job.ranks * job.devices), 1))
        << job.options << " on " << job.ranks << " ranks of " << job.devices;
  }
}

}  // namespace tandem::test
