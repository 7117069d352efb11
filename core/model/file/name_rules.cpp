#include "core/model/file/name_rules.h"

#include <sstream>

#include "core/base/error.h"
#include "core/base/files/files.h"
#include "core/base/files/plain_text_file.h"
#include "core/base/text/strings.h"

namespace tandem {

namespace fs = std::filesystem;

std::optional<std::string> renamed(const std::string& name, const NameRule& rule) {
  const size_t star = rule.from.find('*');
  if (star == std::string::npos) {
    return name == rule.from ? std::optional(rule.to) : std::nullopt;
  }
  const std::string begin = rule.from.substr(0, star), end = rule.from.substr(star + 1);
  const bool fits =
      name.size() >= begin.size() + end.size() && name.starts_with(begin) && name.ends_with(end);
  if (!fits) return std::nullopt;
  const std::string middle = name.substr(begin.size(), name.size() - begin.size() - end.size());
  std::string result = rule.to;
  const size_t place = result.find('*');
  if (place != std::string::npos) result.replace(place, 1, middle);
  return result;
}

NameRules read_name_rules(const fs::path& file) {
  NameRules result;
  std::istringstream lines(read_plain_text(file));
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    std::istringstream words(line);
    NameRule rule;
    std::string more;
    if (!(words >> rule.from) || rule.from.front() == '#') continue;
    if (!(words >> rule.to) || (words >> more)) {
      throw error("{}:{}: a rule is two names, as '*.running_mean *.mean'", file.string(), number);
    }
    if (rule.from == "net") {
      result.net = rule.to;
    } else if (rule.from == "interpolation") {
      result.interpolation = rule.to;
    } else if (rule.from == "eps") {
      if (!parse_number(rule.to, &result.eps) || result.eps <= 0 || result.eps > 1) {
        throw error("{}:{}: eps {}: what BatchNorm adds to the variance, above 0 and at most 1",
                    file.string(), number, rule.to);
      }
    } else if (rule.from == "resize") {
      if (!parse_integer(rule.to, &result.resize) || result.resize < 1 ||
          result.resize > max_image_side) {
        throw error("{}:{}: resize {}: the shorter side in pixels, from 1 to {}", file.string(),
                    number, rule.to, max_image_side);
      }
    } else {
      result.rules.push_back(rule);
    }
  }
  return result;
}

}  // namespace tandem
