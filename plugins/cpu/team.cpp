#include "plugins/cpu/team.h"

#include <unistd.h>

#include <cstdlib>
#include <thread>

namespace tandem::cpu {

namespace {

#if TANDEM_CPU_TEAMS
// libgomp spins for some 300,000 rounds before a worker sleeps, but only for about 100 while the
// process has more OpenMP threads than CPUs. Its environment variables do the same, but are read
// when it is loaded, which is before this module is. So one team that is never used again, larger
// than the machine, stands by: its threads sleep and cost nothing.
bool crowd() {
  const bool user_decided =
      std::getenv("OMP_WAIT_POLICY") != nullptr || std::getenv("GOMP_SPINCOUNT") != nullptr;
  if (user_decided) return false;
  std::thread([] {
#pragma omp parallel num_threads(omp_get_num_procs() + 1)
    {
#pragma omp barrier  // an empty region would be optimised away, and no team made
    }
    for (;;) pause();  // the team lives as long as the thread that made it
  }).detach();
  return true;
}
#endif

}  // namespace

void calm_idle_teams() {
#if TANDEM_CPU_TEAMS
  [[maybe_unused]] static const bool done = crowd();
#endif
}

}  // namespace tandem::cpu
