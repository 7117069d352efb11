#include "plugins/cpu/team.h"

#include <unistd.h>

#include <cstdlib>
#include <thread>

namespace tandem::cpu {

namespace {

#if TANDEM_CPU_TEAMS
// Before a worker of libgomp sleeps it spins for some 300,000 rounds, but only for about 100 if the
// process has more OpenMP threads than CPUs. libgomp's environment variables would change this, but
// they are read when it is loaded, which is before this module. So this starts one team that is
// larger than the machine and is never used again. Its threads sleep and cost nothing.
bool crowd() {
  const bool user_decided =
      std::getenv("OMP_WAIT_POLICY") != nullptr || std::getenv("GOMP_SPINCOUNT") != nullptr;
  if (user_decided) return false;
  std::thread([] {
    run_team(omp_get_num_procs() + 1, [] {
#if defined(TANDEM_LIBGOMP)
      GOMP_barrier();
#else
#pragma omp barrier  // an empty region would be optimized away, and no team started
#endif
    });
    for (;;) pause();  // the team lives as long as the thread that started it
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
