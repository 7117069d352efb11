#include "core/plugin/program_plugins.h"

namespace tandem {

ProgramPlugins& program_plugins() {
  static ProgramPlugins plugins;
  return plugins;
}

}  // namespace tandem
