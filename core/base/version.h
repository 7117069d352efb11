// The version of this build of Tandem.
#pragma once

namespace tandem {

[[nodiscard]] const char* version();  // "0.1.0"

}  // namespace tandem
