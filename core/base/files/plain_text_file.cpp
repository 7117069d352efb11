#include "core/base/files/plain_text_file.h"

#include "core/base/files/files.h"
#include "plugins/plain_text.h"

namespace tandem {

std::string read_plain_text(const std::filesystem::path& path, const std::string& what) {
  return with_plain_blanks(plain_text(read_text_file(path, what)));
}

}  // namespace tandem
