#include "core/check/cases/variants.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/text/strings.h"

namespace tandem::checker {

std::string guess(const tandem_parameter& p) {
  const auto within = [&](double value) {
    return p.minimum <= p.maximum ? std::clamp(value, p.minimum, p.maximum) : value;
  };
  switch (p.type) {
    case TANDEM_PARAMETER_INTEGER:
    case TANDEM_PARAMETER_INTEGERS:
      return fmt::format("{}", int64_t(within(2)));
    case TANDEM_PARAMETER_NUMBER:
    case TANDEM_PARAMETER_NUMBERS:
      return fmt::format("{:g}", within(0.5));
    case TANDEM_PARAMETER_BOOLEAN:
      return "true";
    case TANDEM_PARAMETER_TEXT:
      return p.choices == nullptr ? "" : split(p.choices, '|').front();
    case TANDEM_PARAMETER_FILLER:
      return "xavier";
    default:
      return "";
  }
}

namespace {

// All orders of so many axes, from `first` on, as texts.
std::vector<std::vector<std::string>> orders(int64_t first, int64_t count) {
  std::vector<std::string> axes;
  for (int64_t axis = first; axis < first + count; ++axis) axes.push_back(fmt::format("{}", axis));
  std::vector<std::vector<std::string>> result;
  do {
    result.push_back(axes);
  } while (std::next_permutation(axes.begin(), axes.end()));
  return result;
}

bool names_axes(const tandem_parameter& p) {
  const std::string name = p.name;
  return name.find("ax") != std::string::npos || name.find("order") != std::string::npos ||
         name.find("perm") != std::string::npos;
}

// Other values of a parameter than its usual one, each as what is written of it: a list has
// several.
std::vector<std::vector<std::string>> other_values(const tandem_parameter& p) {
  const std::string usual = p.required != 0              ? guess(p)
                            : p.default_value == nullptr ? ""
                                                         : p.default_value;
  double number = 0;
  const bool is_number = parse_number(usual, &number), is_bounded = p.minimum <= p.maximum;
  std::vector<std::vector<std::string>> values;
  const auto add = [&](const std::string& value) {
    const std::vector<std::string> one{value};
    if (value == usual || std::count(values.begin(), values.end(), one) > 0) return;
    values.push_back(one);
  };
  const auto add_integer = [&](double value) {
    if (!is_bounded || (value >= p.minimum && value <= p.maximum)) {
      add(fmt::format("{}", int64_t(value)));
    }
  };
  constexpr double large = 100;
  const bool is_list = p.type == TANDEM_PARAMETER_INTEGERS || p.type == TANDEM_PARAMETER_NUMBERS;
  if (p.type == TANDEM_PARAMETER_BOOLEAN) add(usual == "true" ? "false" : "true");
  if (p.type == TANDEM_PARAMETER_TEXT && p.choices != nullptr) {
    for (const std::string& word : split(p.choices, '|')) add(word);
  }
  if (p.type == TANDEM_PARAMETER_INTEGER) {
    add_integer(number + 1);
    add_integer(is_bounded && p.maximum < large ? p.maximum : large);
    add_integer(is_bounded ? p.minimum : 0);
    for (const double axis : {-1, 0, 1, 2, 3}) {
      if (names_axes(p)) add_integer(axis);
    }
  }
  if (p.type == TANDEM_PARAMETER_NUMBER && is_number) {
    const double other = number == 0 ? 0.5 : 1.5 * number;
    add(fmt::format("{:g}", is_bounded ? std::clamp(other, p.minimum, p.maximum) : other));
  }
  if (p.type == TANDEM_PARAMETER_INTEGERS && names_axes(p)) {
    for (const auto& [first, count] : {std::pair{0, 4}, {1, 3}, {1, 2}}) {
      for (std::vector<std::string>& order : orders(first, count)) values.push_back(order);
    }
  }
  if (is_list) {
    for (const int64_t first : {0, 1, 3}) add_integer(double(first));
    add(guess(p));
    values.push_back({guess(p), guess(p)});
  }
  return values;
}

}  // namespace

std::vector<Parameters> variants(const tandem_layer_type& type, const Parameters& base) {
  std::vector<Parameters> result;
  std::vector<std::pair<std::string, std::string>> switches;
  const auto without = [&](const std::string& name) {
    Parameters others = base;
    std::erase_if(others, [&](const auto& one) { return one.first == name; });
    return others;
  };
  for (uint32_t i = 0; i < type.parameter_count; ++i) {
    const tandem_parameter& p = *type.parameters[i];
    const bool is_given =
        std::any_of(base.begin(), base.end(), [&](const auto& one) { return one.first == p.name; });
    if (is_given && p.required == 0) continue;
    for (const std::vector<std::string>& values : other_values(p)) {
      result.push_back(without(p.name));
      for (const std::string& value : values) result.back().emplace_back(p.name, value);
      const bool is_switch = p.type == TANDEM_PARAMETER_BOOLEAN || p.type == TANDEM_PARAMETER_TEXT;
      if (is_switch) switches.emplace_back(p.name, values.front());
    }
  }
  for (size_t a = 0; a < switches.size(); ++a) {
    for (size_t b = a + 1; b < switches.size(); ++b) {
      if (switches[a].first == switches[b].first) continue;
      result.push_back(base);
      std::erase_if(result.back(), [&](const auto& one) {
        return one.first == switches[a].first || one.first == switches[b].first;
      });
      result.back().insert(result.back().end(), {switches[a], switches[b]});
    }
  }
  return result;
}

}  // namespace tandem::checker
