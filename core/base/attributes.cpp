#include "core/base/attributes.h"

#include <algorithm>
#include <cmath>

#include "core/base/strings.h"

namespace tandem {

const std::vector<std::string>& filler_types() {
  static const std::vector<std::string> types{
      "constant", "uniform", "gaussian", "positive_unitball", "xavier", "msra", "bilinear"};
  return types;
}

namespace {

const char* type_name(int32_t type) {
  switch (type) {
    case TANDEM_PARAMETER_INTEGER:
      return "an integer";
    case TANDEM_PARAMETER_NUMBER:
      return "a number";
    case TANDEM_PARAMETER_BOOLEAN:
      return "true or false";
    case TANDEM_PARAMETER_TEXT:
      return "a text";
    case TANDEM_PARAMETER_INTEGERS:
      return "one or more integers";
    case TANDEM_PARAMETER_NUMBERS:
      return "one or more numbers";
    case TANDEM_PARAMETER_FILLER:
      return "a filler message such as { type: \"xavier\" }";
    default:
      return "of a type this Tandem does not know";
  }
}

const char* type_name(const Attribute& attribute) {
  static constexpr const char* names[] = {"has no value", "is an integer", "is a number",
                                          "is a boolean", "is a text",     "is a list",
                                          "is a filler",  "is a list"};
  return names[attribute.value.index()];
}

// Reads the values of one parameter; every refusal says whose, which, what was written and where.
class Reader {
 public:
  Reader(const tandem_parameter& parameter, const std::string& owner, const Location& location)
      : parameter_(parameter), owner_(owner), location_(location) {}

  [[nodiscard]] Error refusal(std::string_view raw, const std::string& right) const {
    const std::string place = to_string(location_);
    return error("{}: {} is '{}', but must be {}{}", owner_, parameter_.name, raw, right,
                 place.empty() ? "" : fmt::format(" ({})", place));
  }

  [[nodiscard]] int64_t integer(const std::string& raw) const {
    int64_t value = 0;
    if (!parse_integer(raw, &value)) throw refusal(raw, type_name(parameter_.type));
    require_range(raw, static_cast<double>(value));
    return value;
  }

  [[nodiscard]] double number(const std::string& raw) const {
    double value = 0;
    if (!parse_number(raw, &value) || !std::isfinite(value)) throw refusal(raw, "a finite number");
    require_range(raw, value);
    return value;
  }

  [[nodiscard]] bool boolean(const std::string& raw) const {
    if (raw == "true" || raw == "t" || raw == "True" || raw == "1") return true;
    if (raw == "false" || raw == "f" || raw == "False" || raw == "0") return false;
    throw refusal(raw, "true or false");
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
      std::vector<int64_t> values;
      for (const std::string& one : raw) values.push_back(reader.integer(one));
      attribute.value = std::move(values);
      break;
    }
    case TANDEM_PARAMETER_NUMBERS: {
      std::vector<double> values;
      for (const std::string& one : raw) values.push_back(reader.number(one));
      attribute.value = std::move(values);
      break;
    }
    default:
      throw reader.refusal(fmt::format("{}", fmt::join(raw, ", ")), type_name(parameter.type));
  }
  return attribute;
}

Attribute default_attribute(const tandem_parameter& parameter, const std::string& owner) {
  Attribute attribute;
  const char* text = parameter.default_value;
  if (parameter.type == TANDEM_PARAMETER_FILLER) {
    Filler filler;
    if (text != nullptr) filler.type = text;
    attribute.value = filler;
  } else if (parameter.type == TANDEM_PARAMETER_INTEGERS ||
             parameter.type == TANDEM_PARAMETER_NUMBERS) {
    if (text == nullptr || *text == '\0') {
      if (parameter.type == TANDEM_PARAMETER_INTEGERS) {
        attribute.value = std::vector<int64_t>{};
      } else {
        attribute.value = std::vector<double>{};
      }
    } else {
      attribute = parse_attribute(parameter, split(text, ','), owner, {});
    }
  } else if (text != nullptr) {
    attribute = parse_attribute(parameter, {text}, owner, {});
  }
  attribute.is_set = false;
  return attribute;
}

}  // namespace tandem
