// The parameters of a layer type or data set: how they are declared, and how their values are read.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "host.h"

namespace tandem::sdk {

// A declared parameter: integer("convolution_param", "num_output").required().range(1, 1e6)
// .help("output channels"). Strings must be literals.
class Parameter : public tandem_parameter {
 public:
  Parameter(int32_t parameter_type, const char* block_name, const char* parameter_name)
      : tandem_parameter{} {
    struct_size = sizeof(tandem_parameter);
    type = parameter_type;
    block = block_name;
    name = parameter_name;
    minimum = 1;
    maximum = 0;
    tandem_parameter::help = "";
  }
  Parameter& required() { return tandem_parameter::required = 1, *this; }
  Parameter& by_default(const char* value) { return default_value = value, *this; }
  Parameter& range(double low, double high) { return minimum = low, maximum = high, *this; }
  Parameter& one_of(const char* words) { return choices = words, *this; }
  Parameter& help(const char* line) { return tandem_parameter::help = line, *this; }
};
inline Parameter integer(const char* b, const char* n) {
  return {TANDEM_PARAMETER_INTEGER, b, n};
}
inline Parameter number(const char* b, const char* n) {
  return {TANDEM_PARAMETER_NUMBER, b, n};
}
inline Parameter boolean(const char* b, const char* n) {
  return {TANDEM_PARAMETER_BOOLEAN, b, n};
}
inline Parameter word(const char* b, const char* n) {
  return {TANDEM_PARAMETER_TEXT, b, n};
}
inline Parameter integers(const char* b, const char* n) {
  return {TANDEM_PARAMETER_INTEGERS, b, n};
}
inline Parameter numbers(const char* b, const char* n) {
  return {TANDEM_PARAMETER_NUMBERS, b, n};
}
inline Parameter filler(const char* b, const char* n) {
  return {TANDEM_PARAMETER_FILLER, b, n};
}

class Attributes {
 public:
  explicit Attributes(const tandem_attributes* attributes) : attributes_(attributes) {}
  int64_t integer(const char* name) const { return get<int64_t>(host->get_integer, name); }
  bool boolean(const char* name) const { return integer(name) != 0; }
  double number(const char* name) const { return get<double>(host->get_number, name); }
  std::string_view text(const char* name) const { return get<const char*>(host->get_text, name); }
  std::vector<int64_t> integers(const char* name) const {
    const int64_t* values = nullptr;
    uint32_t size = 0;
    require(host->get_integers(attributes_, name, &values, &size), name);
    return {values, values + size};
  }
  std::vector<double> numbers(const char* name) const {
    const double* values = nullptr;
    uint32_t size = 0;
    require(host->get_numbers(attributes_, name, &values, &size), name);
    return {values, values + size};
  }
  bool is_set(const char* name) const { return host->is_set(attributes_, name) != 0; }

 private:
  static void require(tandem_status status, const char* name) {
    if (status == TANDEM_OK) return;
    const std::string reason = explained();
    throw Refusal(status,
                  reason.empty() ? sdk::text("parameter '", name, "' cannot be read") : reason);
  }
  template <class Value, class Getter>
  Value get(Getter getter, const char* name) const {
    Value value{};
    require(getter(attributes_, name, &value), name);
    return value;
  }
  const tandem_attributes* attributes_;
};

}  // namespace tandem::sdk
