// Text files that people write, read in one way: however an editor has saved them.
#pragma once

#include <filesystem>
#include <string>

namespace tandem {

// As read_text_file(), as UTF-8 without a byte order mark, with lines that end in '\n', and with
// spaces for no-break spaces and the like.
[[nodiscard]] std::string read_plain_text(const std::filesystem::path& path,
                                          const std::string& what = "file");

}  // namespace tandem
