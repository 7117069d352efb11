// The values of a layer's or data set's declared parameters, checked, with defaults filled in. What
// the C ABI calls tandem_attributes is this class; the host table's getters read it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "core/base/error.h"
#include "plugins/abi.h"

namespace tandem {

// How a weight gets its initial values; field names and defaults are Caffe's FillerParameter.
struct Filler {
  std::string type = "constant";  // one of filler_types()
  double value = 0;
  double min = 0, max = 1;
  double mean = 0, std = 1;
  int64_t sparse =
      -1;  // gaussian: so many weights into each input are not zero, on average; -1: all
  std::string variance_norm = "FAN_IN";  // FAN_IN, FAN_OUT, AVERAGE
};

// constant, uniform, gaussian, positive_unitball, xavier, msra, bilinear.
[[nodiscard]] const std::vector<std::string>& filler_types();

struct Attribute {
  std::variant<std::monostate, int64_t, double, bool, std::string, std::vector<int64_t>, Filler,
               std::vector<double>>
      value;
  bool is_set = false;  // written by the user, not a default
  Location location;    // where
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

// A value written as text (`raw`, at `location`) for one declared parameter, checked for type,
// range and choice. The Error names the parameter, the value, and what is allowed; `owner` is as
// "layer 'conv1' (Convolution)". Repeated fields come as several texts.
[[nodiscard]] Attribute parse_attribute(const tandem_parameter& parameter,
                                        const std::vector<std::string>& raw,
                                        const std::string& owner, const Location& location);
// The declared default (monostate if there is none).
[[nodiscard]] Attribute default_attribute(const tandem_parameter& parameter,
                                          const std::string& owner);

}  // namespace tandem
