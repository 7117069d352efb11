#include "datasets/image_folder/white.h"

#include <algorithm>

#include "datasets/image_folder/image_headers.h"
#include "datasets/image_folder/image_set.h"
#include "plugins/regular_file.h"

namespace tandem::image_folder {
namespace {

// The largest values of the pictures that were looked at.
struct Seen {
  int64_t integers = 0, floats = 0;
  double greatest = 0;
};

void look_at(Reader& reader, Bytes file, Seen& seen) {
  if (file.empty() || is_jpeg(file) || bits_of(file) <= 8) return;
  try {
    (void)reader.open(file);
  } catch (const sdk::Refusal& unreadable) {
    if (unreadable.status() != TANDEM_SKIP) throw;
    return;  // get() says why
  }
  if (reader.greatest() <= 0) return;
  ++(reader.has_floats() ? seen.floats : seen.integers);
  seen.greatest = std::max(seen.greatest, reader.greatest());
}

}  // namespace

sdk::Parameter white_parameter(const char* block) {
  return sdk::number(block, "white")
      .by_default("0")
      .range(0, 1e30)
      .help(
          "the value that is white in pictures of over 8 bits a channel; 0: by the training data, "
          "else 65535, and 1 of floats");
}

White find_white(int64_t count, const std::function<Bytes(int64_t, Reader&)>& load) {
  constexpr int64_t looked_at = 200;
  Seen seen;
  const int64_t wanted = std::min(looked_at, count);
  for (int64_t i = 0; i < wanted; ++i) {
    const ThreadReader reader(false, 0);
    try {
      look_at(*reader, load(i * count / wanted, *reader), seen);
    } catch (const sdk::Refusal& unreadable) {
      if (unreadable.status() != TANDEM_SKIP) throw;
    }
  }
  const int64_t deep = seen.integers + seen.floats;
  if (deep == 0) return {};
  if (seen.integers > 0 && seen.floats > 0) {
    return {0,
            "pictures of 16 bits and of floats beside each other: white is 65535 in the ones and "
            "1 in the others"};
  }
  White white;
  for (const double candidate : {1.0, 255.0, 1023.0, 4095.0, 16383.0, 65535.0, seen.greatest}) {
    if (candidate == 1 && seen.floats == 0) continue;
    white.value = candidate;
    if (candidate >= seen.greatest) break;
  }
  white.note = sdk::text("white=", white.value, ": the largest value of ", deep,
                         deep == 1 ? " picture" : " pictures", " of over 8 bits a channel is ",
                         seen.greatest, " (--data-option white=N)");
  return white;
}

bool may_have_deep_values(const std::string& path) {
  unsigned char beginning[64] = {};
  const RegularFile file(path);
  size_t done = 0;
  if (file.error() != 0 || file.read(0, beginning, sizeof(beginning), &done) != 0) return false;
  const Bytes bytes(beginning, done);
  if (is_jpeg(bytes) || is_gif(bytes) || is_webp(bytes) || !is_known_format(bytes)) return false;
  return is_tiff(bytes) || bits_of(bytes) > 8;
}

}  // namespace tandem::image_folder
