#include "datasets/picture/classes.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <sstream>
#include <utility>

#include "datasets/picture/names.h"
#include "plugins/fnv.h"
#include "plugins/random.h"
#include "plugins/sdk.h"

namespace tandem::picture {
namespace {

// Random numbers are counted by layer: this number ("spli") is of no layer of a net.
constexpr uint32_t split_layer = 0x73706c69;

}  // namespace

HeldOut HeldOut::of(const sdk::Attributes& attributes) {
  HeldOut share;
  share.fraction = attributes.number("val_fraction");
  const std::string text(attributes.text("fold"));
  if (text.empty()) return share;
  const size_t slash = text.find('/');
  const auto read = [&](std::string_view digits, int64_t* value) {
    const auto [stop, status] = std::from_chars(digits.begin(), digits.end(), *value);
    return status == std::errc{} && stop == digits.end();
  };
  const std::string_view view = text;
  const bool is_read = slash != std::string::npos && read(view.substr(0, slash), &share.part) &&
                       read(view.substr(slash + 1), &share.parts);
  if (!is_read || share.parts < 2 || share.part < 1 || share.part > share.parts) {
    throw sdk::invalid("fold=", text, ": which of how many parts is held out, as 1/5 to 5/5");
  }
  if (share.fraction == 0) {
    throw sdk::invalid("fold=", text, " holds out a part, val_fraction=0 none: give one of them");
  }
  if (share.fraction < 1) share.fraction = 1 / static_cast<double>(share.parts);
  return share;
}

std::string HeldOut::why_none() const {
  if (parts > 0) {
    return sdk::text("fold=", part, "/", parts, " holds out no image: no class has so many");
  }
  return "every class has one image, so that none can be held out for validation: add images, or "
         "train without validation by --data-option val_fraction=0";
}

void HeldOut::add_parameters(const char* block, std::vector<sdk::Parameter>& parameters) {
  parameters.push_back(
      sdk::number(block, "val_fraction")
          .by_default("0.2")
          .range(0, 1)
          .help("share of each class held out for validation where none is given"));
  parameters.push_back(sdk::word(block, "fold")
                           .by_default("")
                           .help("which of several equal parts is held out instead, as 1/5"));
}

std::vector<bool> choose_held_out(const std::string& class_name, size_t count, const HeldOut& share,
                                  uint64_t seed) {
  const double fraction = share.fraction;
  auto held = static_cast<size_t>(std::llround(fraction * static_cast<double>(count)));
  if (fraction > 0 && fraction < 1 && count > 0)
    held = std::clamp<size_t>(held, count > 1 ? 1 : 0, count - 1);
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  // Each class has its own random numbers, so that one more class does not change the others.
  const uint64_t row = fnv::hash_of(class_name);
  for (size_t i = count; i > 1; --i) {
    const uint32_t bits =
        tandem_random_block(seed, 0, split_layer, row, static_cast<uint32_t>(i)).value[0];
    std::swap(order[i - 1], order[static_cast<uint64_t>(bits) * i >> 32]);
  }
  std::vector<bool> result(count, false);
  if (share.parts > 0 && fraction > 0 && fraction < 1) {
    const auto step = static_cast<size_t>(share.parts);
    for (size_t i = static_cast<size_t>(share.part - 1); i < count; i += step) {
      result[order[i]] = true;
    }
    return result;
  }
  for (size_t i = 0; i < std::min(held, count); ++i) result[order[i]] = true;
  return result;
}

std::vector<size_t> part_of(const std::vector<int64_t>& labels,
                            const std::vector<std::string>& class_names, const HeldOut& share,
                            uint64_t seed, bool held_out) {
  std::vector<std::vector<size_t>> by_class(class_names.size());
  for (size_t i = 0; i < labels.size(); ++i)
    by_class.at(static_cast<size_t>(labels[i])).push_back(i);
  std::vector<size_t> part;
  for (size_t c = 0; c < by_class.size(); ++c) {
    const std::vector<bool> held = choose_held_out(class_names[c], by_class[c].size(), share, seed);
    for (size_t i = 0; i < held.size(); ++i) {
      if (held[i] == held_out) part.push_back(by_class[c][i]);
    }
  }
  return part;
}

std::vector<std::string> lines_of(const char* text) {
  std::vector<std::string> lines;
  std::istringstream stream(text == nullptr ? "" : text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

int64_t model_class(const std::string& name, const std::vector<std::string>& model) {
  const auto is_same = [&](const std::string& one) { return as_utf8(one) == as_utf8(name); };
  const auto found = std::find_if(model.begin(), model.end(), is_same);
  if (found != model.end()) return found - model.begin();
  throw sdk::invalid("class '", name, "' is unknown to training", did_you_mean(name, model),
                     "; known classes: ", list_of(model));
}

}  // namespace tandem::picture
