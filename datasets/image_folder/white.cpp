#include "datasets/image_folder/white.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "datasets/image_folder/image_headers.h"
#include "datasets/image_folder/image_set.h"
#include "plugins/regular_file.h"

namespace tandem::image_folder {
namespace {

// The values of the pictures that were looked at.
struct Seen {
  int64_t integers = 0, floats = 0;
  double greatest = std::numeric_limits<double>::lowest();
  Values below_0;  // of the picture with the least value, if that is below 0
  int64_t count_below_0 = 0;
};

void look_at(Reader& reader, Bytes file, Seen& seen) {
  if (file.empty() || is_jpeg(file) || bits_of(file) <= 8) return;
  try {
    (void)reader.open(file);
  } catch (const sdk::Refusal& unreadable) {
    if (unreadable.status() != TANDEM_SKIP) throw;
    return;  // get() says why
  }
  const Values values = reader.values();
  if (values.greatest <= 0 && values.least >= 0) return;
  ++(values.are_floats ? seen.floats : seen.integers);
  seen.greatest = std::max(seen.greatest, values.greatest);
  if (!values.go_below_0()) return;
  ++seen.count_below_0;
  if (values.least < seen.below_0.least) seen.below_0 = values;
}

// The first value that is not exceeded.
double white_of(const Seen& seen, double black) {
  for (const double candidate : {1.0, 255.0, 1023.0, 4095.0, 16383.0, 65535.0}) {
    if (candidate == 1 && seen.floats == 0) continue;
    if (candidate >= seen.greatest && candidate > black) return candidate;
  }
  return std::max(seen.greatest, std::nextafter(black, std::numeric_limits<double>::max()));
}

}  // namespace

void add_level_parameters(const char* block, std::vector<sdk::Parameter>& parameters) {
  constexpr double least = 1e-30, most = 1e30;
  parameters.push_back(
      sdk::number(block, "white")
          .range(least, most)
          .help("the value that is white in pictures of over 8 bits a channel; without it by the "
                "training data, else 65535, and 1 of floats"));
  parameters.push_back(
      sdk::number(block, "black")
          .range(-most, most)
          .help("the value that is black in pictures of over 8 bits a channel; without it 0, and "
                "pictures with values below it are refused"));
}

Levels levels_of(const sdk::Attributes& attributes) {
  Levels levels;
  if (attributes.is_set("white")) levels.white = attributes.number("white");
  if (attributes.is_set("black")) levels.black = attributes.number("black");
  if (levels.white > 0 && levels.white <= levels.black.value_or(0)) {
    throw sdk::invalid("white, ", levels.white, ", is not above black, ", *levels.black);
  }
  return levels;
}

Levels find_white(const Levels& levels, int64_t count,
                  const std::function<Bytes(int64_t, Reader&)>& load, std::string& note) {
  if (levels.white > 0) return levels;
  constexpr int64_t looked_at = 200;
  Seen seen;
  const int64_t wanted = std::min(looked_at, count);
  for (int64_t i = 0; i < wanted; ++i) {
    const ThreadReader reader(false, {0, std::numeric_limits<double>::lowest()});
    try {
      look_at(*reader, load(i * count / wanted, *reader), seen);
    } catch (const sdk::Refusal& unreadable) {
      if (unreadable.status() != TANDEM_SKIP) throw;
    }
  }
  if (seen.count_below_0 > 0 && !levels.black) {
    throw sdk::invalid(seen.count_below_0, " of ", wanted, " pictures that were looked at ",
                       seen.count_below_0 == 1 ? "has " : "have ", no_black(seen.below_0));
  }
  const int64_t deep = seen.integers + seen.floats;
  if (deep == 0) return levels;
  if (seen.integers > 0 && seen.floats > 0) {
    note =
        "pictures of 16 bits and of floats beside each other: white is 65535 in the ones and 1 in "
        "the others";
    return levels;
  }
  const Levels found{white_of(seen, levels.black.value_or(0)), levels.black};
  note = sdk::text("white=", found.white, ": the largest value of ", deep,
                   deep == 1 ? " picture" : " pictures", " of over 8 bits a channel is ",
                   seen.greatest, " (--data-option white=N)");
  return found;
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
