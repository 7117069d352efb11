#include "datasets/picture/data_file.h"

#include <algorithm>
#include <utility>

#include "plugins/plain_text.h"
#include "plugins/sdk.h"

namespace tandem::picture {

PathStatus path_status(const std::string& path) {
  PathStatus status(path);
  if (status.failure() == 0) return status;
  throw sdk::failed("'", path, "' cannot be looked up: ", RegularFile::text_of(status.failure()));
}

DataFile::DataFile(const std::string& path) : path_(path), file_(path) {
  const int error = file_.error();
  if (error == 0) return;
  const std::string why = RegularFile::text_of(error);
  if (RegularFile::is_failure(error)) throw sdk::failed(path, ": cannot be read: ", why);
  throw sdk::invalid(path, ": cannot be read: ", why);
}

bool DataFile::read(int64_t offset, unsigned char* target, size_t count) const {
  size_t done = 0;
  const int error = file_.read(offset, target, count, &done);
  if (error == 0) return done == count;
  throw sdk::failed(path_, ": byte ", offset + static_cast<int64_t>(done),
                    ": cannot be read: ", RegularFile::text_of(error));
}

void DataFile::require_stored() const {
  const int64_t stored = file_.stored_of_hole();
  if (stored < 0) return;
  throw sdk::invalid(path_, ": ", RegularFile::text_of_hole(file_.size(), stored));
}

// In pieces, as a hole in the file has zero bytes: it is refused before it takes memory.
std::string text_of_file(const std::string& path) {
  constexpr int64_t max_bytes = int64_t{1} << 32;
  constexpr int64_t piece_bytes = int64_t{1} << 20, max_utf16_bytes = int64_t{1} << 28;
  const DataFile file(path);
  if (file.size() > max_bytes) throw sdk::invalid(path, ": is over 4 GiB");
  std::string text;
  TextForm form = TextForm::bytes;
  for (int64_t at = 0; at < file.size(); at += piece_bytes) {
    const auto begin = static_cast<size_t>(at);
    text.resize(static_cast<size_t>(std::min(at + piece_bytes, file.size())));
    if (!file.read(at, reinterpret_cast<unsigned char*>(text.data()) + begin,
                   text.size() - begin)) {
      throw sdk::invalid(path, ": became shorter while it was read");
    }
    if (at == 0) form = form_of_text(text);
    const size_t zero = text.find('\0', begin);
    const bool is_wide = form != TextForm::bytes;
    if (zero == std::string::npos || (is_wide && at < max_utf16_bytes)) continue;
    const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<int64_t>(zero), '\n');
    throw sdk::invalid(path, ":", line, ": contains a zero byte: this is no text file");
  }
  return plain_text(std::move(text));
}

}  // namespace tandem::picture
