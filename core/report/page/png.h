// Writing a small picture as PNG without a library: the pixels are stored, not compressed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tandem {

// `pixels`: height rows of width R,G,B bytes.
[[nodiscard]] std::string to_png(int64_t width, int64_t height,
                                 const std::vector<unsigned char>& pixels);

}  // namespace tandem
