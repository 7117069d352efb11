// Tables of measured costs: what was read is written, and reads again.
#include "core/schedule/cost/cost_table.h"

#include "tests/fuzz/targets.h"

namespace tandem::fuzz {

void costs(std::string_view bytes) {
  const std::filesystem::path path = file_of("a.csv", bytes);
  CostTable table;
  if (!accepts([&] { table = CostTable::read(path, Roofline{}, "float32"); })) return;
  const std::filesystem::path again = path.parent_path() / "b.csv";
  std::filesystem::remove(again);
  if (!accepts([&] {
        table.write(again, {});
        if (CostTable::read(again, Roofline{}).empty() != table.empty()) fail("another table");
      })) {
    fail("what was written is refused");
  }
}

}  // namespace tandem::fuzz
