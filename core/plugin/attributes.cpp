#include "core/plugin/attributes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/base/text/decimal_comma.h"
#include "core/base/text/strings.h"

namespace tandem {

const std::vector<std::string>& filler_types() {
  static const std::vector<std::string> types{
      "constant", "uniform", "gaussian", "positive_unitball", "xavier", "msra", "bilinear"};
  return types;
}

namespace {

const char* type_name(int32_t type) {
  static constexpr std::array names{
      "an integer",           "a number",
      "true or false",        "a text",
      "one or more integers", "a filler message such as { type: \"xavier\" }",
      "one or more numbers"};
  return type >= TANDEM_PARAMETER_INTEGER && type <= TANDEM_PARAMETER_NUMBERS
             ? names[size_t(type - TANDEM_PARAMETER_INTEGER)]
             : "of a type this Tandem does not know";
}

const char* type_name(const Attribute& attribute) {
  static constexpr std::array names{"has no value", "is an integer", "is a number", "is a boolean",
                                    "is a text",    "is a list",     "is a filler", "is a list"};
  return names[attribute.value.index()];
}

bool is_list(const tandem_parameter& parameter) {
  return parameter.type == TANDEM_PARAMETER_INTEGERS || parameter.type == TANDEM_PARAMETER_NUMBERS;
}

// Reads the values of one parameter. Every refusal names the owner, the parameter, the value and
// the location.
class Reader {
 public:
  Reader(const tandem_parameter& parameter, const std::string& owner, const Location& location)
      : parameter_(parameter), owner_(owner), location_(location) {}

  [[nodiscard]] Error refusal(std::string_view raw, const std::string& right) const {
    return error("{}: {} is '{}', but must be {}{}", owner_, parameter_.name, raw, right,
                 in_file(location_));
  }

  [[nodiscard]] int64_t integer(const std::string& raw) const {
    int64_t value = 0;
    if (!parse_integer(raw, &value)) throw refusal(raw, type_name(parameter_.type));
    require_range(raw, double(value));
    return value;
  }

  [[nodiscard]] double number(const std::string& raw) const {
    double value = 0;
    constexpr double max_value = std::numeric_limits<float>::max();
    if (!parse_number(raw, &value) || !(std::abs(value) <= max_value)) {
      throw refusal(raw, "a finite number between -3.4e38 and 3.4e38" + decimal_comma_hint(raw));
    }
    require_range(raw, value);
    return value;
  }

  [[nodiscard]] bool boolean(const std::string& raw) const {
    bool value = false;
    if (!parse_boolean(raw, &value)) throw refusal(raw, type_name(parameter_.type));
    return value;
  }

  [[nodiscard]] std::string text(const std::string& raw) const {
    if (parameter_.choices == nullptr) return raw;
    const std::vector<std::string> words = split(parameter_.choices, '|');
    if (std::find(words.begin(), words.end(), raw) != words.end()) return raw;
    throw refusal(raw,
                  fmt::format("{}{}", words.size() > 1 ? "one of " : "", fmt::join(words, ", ")) +
                      did_you_mean(raw, words));
  }

  [[nodiscard]] const std::string& single(const std::vector<std::string>& raw) const {
    if (raw.size() == 1) return raw.front();
    throw refusal(fmt::format("{}", fmt::join(raw, ", ")),
                  fmt::format("{}, written once", type_name(parameter_.type)));
  }

 private:
  void require_range(const std::string& raw, double value) const {
    const double low = parameter_.minimum;
    const double high = parameter_.maximum;
    if (low > high || (value >= low && value <= high)) return;
    if (low == high) throw refusal(raw, fmt::format("{}", low));
    if (std::isinf(high) || high >= 1e15) throw refusal(raw, fmt::format("at least {}", low));
    if (std::isinf(low) || low <= -1e15) throw refusal(raw, fmt::format("at most {}", high));
    throw refusal(raw, fmt::format("from {} to {}", low, high));
  }

  const tandem_parameter& parameter_;
  const std::string& owner_;
  const Location& location_;
};

const Attribute& require(const Attributes& attributes, const std::string& name) {
  if (const Attribute* found = attributes.find(name)) return *found;
  std::vector<std::string> known;
  for (const auto& [key, value] : attributes.values()) known.push_back(key);
  throw error("parameter '{}' was not declared{}", name, did_you_mean(name, known));
}

template <class Value>
const Value& require_type(const Attributes& attributes, const std::string& name, const char* type) {
  const Attribute& attribute = require(attributes, name);
  if (const Value* value = std::get_if<Value>(&attribute.value)) return *value;
  throw error("parameter '{}' was read as {}, but it {}", name, type, type_name(attribute));
}

}  // namespace

const Attribute* Attributes::find(const std::string& name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? nullptr : &found->second;
}

int64_t Attributes::integer(const std::string& name) const {
  if (const bool* value = std::get_if<bool>(&require(*this, name).value)) return *value ? 1 : 0;
  return require_type<int64_t>(*this, name, "an integer");
}

double Attributes::number(const std::string& name) const {
  return require_type<double>(*this, name, "a number");
}

const std::string& Attributes::text(const std::string& name) const {
  return require_type<std::string>(*this, name, "a text");
}

const std::vector<int64_t>& Attributes::integers(const std::string& name) const {
  return require_type<std::vector<int64_t>>(*this, name, "a list of integers");
}

const std::vector<double>& Attributes::numbers(const std::string& name) const {
  return require_type<std::vector<double>>(*this, name, "a list of numbers");
}

const Filler& Attributes::filler(const std::string& name) const {
  return require_type<Filler>(*this, name, "a filler");
}

bool Attributes::is_set(const std::string& name) const {
  return require(*this, name).is_set;
}

Attribute parse_attribute(const tandem_parameter& parameter, const std::vector<std::string>& raw,
                          const std::string& owner, const Location& location) {
  const Reader reader(parameter, owner, location);
  Attribute attribute{.value = {}, .is_set = true, .location = location};
  switch (parameter.type) {
    case TANDEM_PARAMETER_INTEGER:
      attribute.value = reader.integer(reader.single(raw));
      break;
    case TANDEM_PARAMETER_NUMBER:
      attribute.value = reader.number(reader.single(raw));
      break;
    case TANDEM_PARAMETER_BOOLEAN:
      attribute.value = reader.boolean(reader.single(raw));
      break;
    case TANDEM_PARAMETER_TEXT:
      attribute.value = reader.text(reader.single(raw));
      break;
    case TANDEM_PARAMETER_INTEGERS: {
      auto& values = attribute.value.emplace<std::vector<int64_t>>();
      for (const std::string& one : raw) values.push_back(reader.integer(one));
      break;
    }
    case TANDEM_PARAMETER_NUMBERS: {
      auto& values = attribute.value.emplace<std::vector<double>>();
      for (const std::string& one : raw) values.push_back(reader.number(one));
      break;
    }
    default:
      throw reader.refusal(fmt::format("{}", fmt::join(raw, ", ")), type_name(parameter.type));
  }
  return attribute;
}

Attribute parse_attribute(const tandem_parameter& parameter, const std::string& text,
                          const std::string& owner) {
  return parse_attribute(parameter, is_list(parameter) ? split(text, ',') : std::vector{text},
                         owner, {});
}

Attribute default_attribute(const tandem_parameter& parameter, const std::string& owner) {
  Attribute attribute;
  const std::string text = parameter.default_value == nullptr ? "" : parameter.default_value;
  if (parameter.type == TANDEM_PARAMETER_FILLER) {
    Filler filler;
    if (parameter.default_value != nullptr) filler.type = text;
    attribute.value = filler;
  } else if (is_list(parameter) && text.empty()) {
    attribute = parse_attribute(parameter, std::vector<std::string>{}, owner, {});
  } else if (parameter.default_value != nullptr) {
    attribute = parse_attribute(parameter, text, owner);
  }
  attribute.is_set = false;
  return attribute;
}

}  // namespace tandem
