#include "core/base/version.h"

namespace tandem {

const char* version() {
  return TANDEM_VERSION;
}

}  // namespace tandem
