// metrics.csv of a run folder.
#include "core/report/metrics.h"

#include "tests/fuzz/targets.h"

namespace tandem::fuzz {

void metrics(std::string_view bytes) {
  const std::filesystem::path path = file_of("metrics.csv", bytes);
  accepts([&] { (void)best_of(read_metrics(path)); });
}

}  // namespace tandem::fuzz
