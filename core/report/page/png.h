// Small pictures as PNG, in memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tandem {

// `pixels`: height rows of width R,G,B bytes.
[[nodiscard]] std::string to_png(int64_t width, int64_t height,
                                 const std::vector<unsigned char>& pixels);

}  // namespace tandem
