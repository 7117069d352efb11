#include "core/device/parse.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <numeric>

#include "core/base/error.h"
#include "core/base/text/strings.h"
#include "core/plugin/registry.h"

namespace tandem {
namespace {

std::vector<int32_t> parse_count(const std::string& text, const std::string& kind,
                                 const std::string& number) {
  int64_t count = 0;
  if (!parse_integer(number, &count) || count < 1 || count > max_devices) {
    throw error("devices '{}': '{}' is not a number of devices from 1 to {}, as in {}:2", text,
                number, max_devices, kind);
  }
  std::vector<int32_t> ordinals(static_cast<size_t>(count));
  std::iota(ordinals.begin(), ordinals.end(), 0);
  return ordinals;
}

std::vector<int32_t> parse_ids(const std::string& text, const std::string& kind,
                               const std::string& list) {
  std::vector<int32_t> ordinals;
  for (const std::string& id : split(list, ',')) {
    int64_t ordinal = 0;
    if (!parse_integer(id, &ordinal) || ordinal < 0 || ordinal >= max_devices) {
      throw error("devices '{}': '{}' is not the id of a device, as in {}:0,1", text, id, kind);
    }
    ordinals.push_back(static_cast<int32_t>(ordinal));
  }
  if (ordinals.empty()) throw error("devices '{}': no id, as in {}:0,1", text, kind);
  return ordinals;
}

struct Unit {
  const char* name;
  double factor;
};

struct Quantity {
  double number = 0;
  const Unit* unit = nullptr;  // null: the text is no number with one of the units
};

Quantity read_quantity(const std::string& text, const std::vector<Unit>& units) {
  Quantity quantity;
  const char* last = text.data() + text.size();
  const auto [end, status] = std::from_chars(text.data(), last, quantity.number);
  const std::string name(end, last);
  const auto found = std::find_if(units.begin(), units.end(),
                                  [&](const Unit& known) { return name == known.name; });
  if (status == std::errc() && found != units.end()) quantity.unit = &*found;
  return quantity;
}

// `example` shows one.
double parse_quantity(const std::string& where, const std::string& field, const std::string& value,
                      const std::vector<Unit>& units, const char* example) {
  const auto [number, unit] = read_quantity(value, units);
  if (unit != nullptr && number >= 0 && number <= 1e18) return number * unit->factor;
  std::vector<std::string> names;
  for (const Unit& known : units) names.emplace_back(known.name);
  throw error("{}: {} '{}' is not a number, 0 or more, with a unit ({}), as in {}", where, field,
              value, fmt::join(names, ", "), example);
}

std::string lower_case(std::string text) {
  for (char& c : text) c = characters::lower(c);
  return text;
}

// The kind whose devices are named by number, if there is one alone: that of GPUs.
std::string kind_of_gpus(const std::vector<std::string>& kinds,
                         const std::function<bool(const std::string&)>& is_counted) {
  std::string found;
  for (const std::string& kind : kinds) {
    if (is_counted(kind)) continue;
    if (!found.empty()) return "";
    found = kind;
  }
  return found;
}

bool is_gpu(const std::string& word) {
  return word == "gpu" || word == "gpus";
}

// The known kind that a word means, in any case; "": none.
std::string kind_of(const std::string& word, const std::vector<std::string>& kinds,
                    const std::function<bool(const std::string&)>& is_counted) {
  for (const std::string& kind : {word, lower_case(word)}) {
    if (std::find(kinds.begin(), kinds.end(), kind) != kinds.end()) return kind;
  }
  return is_gpu(lower_case(word)) ? kind_of_gpus(kinds, is_counted) : "";
}

// "0", "0,1" and "gpu0" are how others name GPUs.
std::string hint_of(const std::string& text, const std::string& word,
                    const std::vector<std::string>& kinds,
                    const std::function<bool(const std::string&)>& is_counted) {
  if (is_gpu(lower_case(word))) return " (no backend for GPUs is here, or several)";
  const std::string numbers = lower_case(text).starts_with("gpu") ? text.substr(3) : text;
  const bool is_number = !numbers.empty() && numbers.find_first_not_of("0123456789,") == text.npos;
  const std::string gpus = is_number ? kind_of_gpus(kinds, is_counted) : "";
  return gpus.empty() ? did_you_mean(word, kinds)
                      : fmt::format(" (did you mean '{}:{}'?)", gpus, numbers);
}

// KIND:all
std::vector<int32_t> all_devices(const std::string& text, const DeviceSpec& spec,
                                 const std::function<int(const std::string&)>& count_all) {
  if (spec.is_counted) {
    throw error(
        "devices '{}': {}", text,
        spec.kind == default_kind
            ? "a cpu device computes on all cores: write cpu, or cpu:2 for two that share them"
            : fmt::format("there are as many as you say, as in {}:4", spec.kind));
  }
  // Without any, the first one is asked for, and the backend says what is missing.
  std::vector<int32_t> ordinals(size_t(std::max(1, count_all(spec.kind))));
  std::iota(ordinals.begin(), ordinals.end(), 0);
  return ordinals;
}

}  // namespace

DeviceSpec parse_devices(const std::string& text, const Registry& registry) {
  const auto count_all = [&](const std::string& kind) {
    int32_t count = 0;
    const bool is_known = registry.backend(kind).count(&count) == TANDEM_OK;
    return is_known ? std::min(count, max_devices) : 0;
  };
  return parse_devices(
      text, registry.backends(),
      [&](const std::string& kind) { return registry.backend(kind).counted_devices != 0; },
      count_all);
}

DeviceSpec parse_devices(const std::string& text, const std::vector<std::string>& kinds,
                         const std::function<bool(const std::string&)>& is_counted,
                         const std::function<int(const std::string&)>& count_all) {
  const size_t colon = text.find(':');
  DeviceSpec spec;
  const std::string word = text.substr(0, colon);
  spec.kind = kind_of(word, kinds, is_counted);
  if (spec.kind.empty()) {
    throw error("devices '{}': unknown kind '{}'{}; known here: {}", text, word,
                hint_of(text, word, kinds, is_counted), fmt::join(kinds, ", "));
  }
  spec.is_counted = is_counted(spec.kind);
  if (colon == std::string::npos) return spec;
  const std::string which = text.substr(colon + 1);
  if (lower_case(which) == "all") {
    spec.ordinals = all_devices(text, spec, count_all);
  } else {
    spec.ordinals =
        spec.is_counted ? parse_count(text, spec.kind, which) : parse_ids(text, spec.kind, which);
  }
  return spec;
}

std::string simulated_devices(int count) {
  return fmt::format("{}:{}", simulator_kind, count);
}

std::string to_string(const DeviceSpec& spec) {
  if (spec.is_counted) return fmt::format("{}:{}", spec.kind, spec.count());
  return fmt::format("{}:{}", spec.kind, fmt::join(spec.ordinals, ","));
}

double parse_bandwidth(const std::string& value, const std::string& where) {
  static const std::vector<Unit> units{{"B/s", 1}, {"kB/s", 1e3}, {"MB/s", 1e6}, {"GB/s", 1e9}};
  const double bandwidth = parse_quantity(where, "bandwidth", value, units, "4GB/s");
  // Beyond these the unit is wrong, and times would overflow the clock of a step.
  constexpr double least = 1e3, most = 1e15;
  if (bandwidth <= 0) throw error("{}: bandwidth '{}' must be above 0", where, value);
  if (bandwidth < least || bandwidth > most) {
    throw error("{}: bandwidth '{}' is not between 1kB/s and 1000000GB/s", where, value);
  }
  return bandwidth;
}

double parse_latency(const std::string& value, const std::string& where) {
  static const std::vector<Unit> units{{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}};
  constexpr double most = 60;
  const double latency = parse_quantity(where, "latency", value, units, "10us");
  if (latency > most) throw error("{}: latency '{}' is more than 60s", where, value);
  return latency;
}

int64_t parse_size(const std::string& text, const std::string& option) {
  static const std::vector<Unit> units{{"B", 1},
                                       {"kB", 1e3},
                                       {"MB", 1e6},
                                       {"GB", 1e9},
                                       {"KiB", 1024.0},
                                       {"MiB", 1024.0 * 1024},
                                       {"GiB", 1024.0 * 1024 * 1024}};
  const auto [number, unit] = read_quantity(text, units);
  const double bytes = unit == nullptr ? 0 : number * unit->factor;
  if (!(bytes >= 1) || bytes > 1e15) {
    throw error(
        "{} {}: not a size of a byte or more with a unit (B, kB, MB, GB, KiB, MiB, GiB), "
        "as in 4MiB",
        option, text);
  }
  return static_cast<int64_t>(bytes);
}

LinkSpec parse_link(const std::string& text) {
  LinkSpec link;
  const std::string where = fmt::format("link '{}'", text);
  for (const std::string& part : split(text, ',')) {
    const size_t equals = part.find('=');
    const std::string field = part.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : part.substr(equals + 1);
    if (field == "bandwidth") {
      link.bandwidth = parse_bandwidth(value, where);
    } else if (field == "latency") {
      link.latency = parse_latency(value, where);
    } else {
      throw error("link '{}': unknown field '{}'{}; write bandwidth=4GB/s,latency=10us", text,
                  field, did_you_mean(field, {"bandwidth", "latency"}));
    }
  }
  return link;
}

}  // namespace tandem
