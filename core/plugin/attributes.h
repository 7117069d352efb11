// The values of the parameters that a layer type or a data set declares, checked, with defaults
// filled in. The C ABI's tandem_attributes is this class; the getters of the host table read it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "core/base/error.h"
#include "plugins/abi.h"

namespace tandem {

// How a weight is initialized; field names and defaults are those of Caffe's FillerParameter.
struct Filler {
  std::string type = "constant";  // one of filler_types()
  double value = 0;
  double min = 0, max = 1;
  double mean = 0, std = 1;
  int64_t sparse = -1;  // gaussian: mean number of nonzero weights of each input; -1: all
  std::string variance_norm = "FAN_IN";  // FAN_IN, FAN_OUT, AVERAGE
};

// constant, uniform, gaussian, positive_unitball, xavier, msra, bilinear.
[[nodiscard]] const std::vector<std::string>& filler_types();

struct Attribute {
  // The index of the alternative is the TANDEM_PARAMETER_ type; monostate: no value.
  std::variant<std::monostate, int64_t, double, bool, std::string, std::vector<int64_t>, Filler,
               std::vector<double>>
      value;
  bool is_set = false;  // given by the user, not a default
  Location location;    // where it is written
};

class Attributes {
 public:
  void set(const std::string& name, Attribute attribute) { values_[name] = std::move(attribute); }
  [[nodiscard]] const Attribute* find(const std::string& name) const;

  // Each throws Error if the name was not declared or has another type.
  [[nodiscard]] int64_t integer(const std::string& name) const;
  [[nodiscard]] double number(const std::string& name) const;
  [[nodiscard]] const std::string& text(const std::string& name) const;
  [[nodiscard]] const std::vector<int64_t>& integers(const std::string& name) const;
  [[nodiscard]] const std::vector<double>& numbers(const std::string& name) const;
  [[nodiscard]] const Filler& filler(const std::string& name) const;
  [[nodiscard]] bool is_set(const std::string& name) const;

  [[nodiscard]] const tandem_attributes* handle() const {
    return reinterpret_cast<const tandem_attributes*>(this);
  }
  [[nodiscard]] const std::map<std::string, Attribute>& values() const { return values_; }

 private:
  std::map<std::string, Attribute> values_;
};

// Reads the values `raw` of one declared parameter and checks type, range and choice. A repeated
// field has several values. The Error names the parameter, the value, what is allowed and the
// location. `owner` is as "layer 'conv1' (Convolution)".
[[nodiscard]] Attribute parse_attribute(const tandem_parameter& parameter,
                                        const std::vector<std::string>& raw,
                                        const std::string& owner, const Location& location);
// The same of one text, in which the values of a list are separated by commas.
[[nodiscard]] Attribute parse_attribute(const tandem_parameter& parameter, const std::string& text,
                                        const std::string& owner);
// The declared default (monostate if there is none).
[[nodiscard]] Attribute default_attribute(const tandem_parameter& parameter,
                                          const std::string& owner);

}  // namespace tandem
