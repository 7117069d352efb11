// Solvers: .prototxt in current and old forms. What was read is written as text that gives the
// same text again.
#include "core/model/file/solver_definition.h"
#include "tests/fuzz/targets.h"

namespace tandem::fuzz {

void solver(std::string_view bytes) {
  SolverDefinition definition;
  const std::string text(bytes);
  if (!accepts([&] { definition = read_solver_text(text); })) return;
  std::string written;
  if (!accepts([&] {
        written = write_solver(definition);
        if (write_solver(read_solver_text(written)) != written) fail("another one:\n" + written);
      })) {
    fail("what was written is refused:\n" + written);
  }
}

}  // namespace tandem::fuzz
