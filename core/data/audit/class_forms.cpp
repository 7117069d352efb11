#include "core/data/audit/class_forms.h"

#include <fmt/format.h>

#include <map>
#include <set>

namespace tandem {
namespace {

std::string form_of(const StoredSample& one) {
  const char* color = one.channels == 1   ? "gray "
                      : one.channels == 3 ? "color "
                      : one.channels == 4 ? "four-channel "
                                          : "";
  return one.format.empty() ? "" : color + one.format;
}

std::string size_of(const StoredSample& one) {
  return one.width > 0 ? fmt::format("files of {}x{} pixels", one.width, one.height) : "";
}

}  // namespace

std::vector<std::string> class_forms(const std::vector<SeenSample>& seen,
                                     const std::vector<std::string>& class_names) {
  std::vector<std::string> lines;
  constexpr int64_t few = 4;
  for (const auto text : {&form_of, &size_of}) {
    std::map<std::string, std::map<int64_t, int64_t>> classes_of;  // and their numbers of files
    std::map<int64_t, std::set<std::string>> texts_of;
    for (const SeenSample& one : seen) {
      if (!one.good) continue;
      ++classes_of[text(one.stored)][one.label];
      texts_of[one.label].insert(text(one.stored));
    }
    for (const auto& [what, classes] : classes_of) {
      const auto& [label, files] = *classes.begin();
      if (what.empty() || classes.size() > 1 || texts_of.size() < 2 || files < few) continue;
      if (texts_of.at(label).size() > 1) continue;
      lines.push_back(
          fmt::format("class '{}' has {} alone, and no other class has any: a net may learn that "
                      "and not what the images show",
                      class_names[size_t(label)], what));
      break;
    }
  }
  return lines;
}

}  // namespace tandem
