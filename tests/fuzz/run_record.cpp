// run.json: what was read is written as text that gives the same text again.
#include "core/run/folder/run_record.h"

#include "tests/fuzz/targets.h"

namespace tandem::fuzz {

void run_record(std::string_view bytes) {
  RunRecord record;
  const std::string text(bytes);
  if (!accepts([&] { record = run_record_from_json(text, "run.json"); })) return;
  std::string written;
  if (!accepts([&] {
        written = to_json(record);
        if (to_json(run_record_from_json(written, "run.json")) != written) {
          fail("another record:\n" + written);
        }
      })) {
    fail("what was written is refused:\n" + written);
  }
}

}  // namespace tandem::fuzz
