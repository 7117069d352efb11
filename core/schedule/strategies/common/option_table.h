// The options of a strategy, each described once, together with the member of a struct that the
// strategy reads it into. Command lines, help texts, records, checks and the table in
// docs/reference/strategies.md come from these descriptions.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/model/net/net.h"
#include "include/tandem/strategies.h"

namespace tandem {

struct StrategyOption {
  std::string name;  // "--reduce"
  std::string help;  // what it does, with its default
  // Reads a value from the command line; a flag ignores the text. Error with the option, the value
  // and what would be right.
  std::function<OptionValue(const std::string& text)> parse;
  std::string key{};  // "reduce", in StrategyOptions; flags that contradict each other share it
  OptionValue standard{};            // its value where it is not given
  bool is_flag = false;              // takes no value
  bool is_size = false;              // counts bytes
  std::vector<std::string> words{};  // the allowed values; empty: not a word
  std::string opposite{};            // of a flag: the name of the flag that means the contrary
  // Keys of options whose chosen values depend on this one's; they are chosen again if it changes.
  std::vector<std::string> resets{};
  // Its value fits one number of devices: a run that is resumed with another does not keep it.
  bool fits_devices = false;
  // Where the value names a part of the net: Error if the net does not have it.
  std::function<void(const Net&, const OptionValue&)> check{};

  // Whether the option has a value other than its default; of a flag: the value that it sets.
  [[nodiscard]] bool is_explicit(const StrategyOptions& options) const;
  // Error for a value that the command line would refuse.
  void validate(const OptionValue& value) const;
  // "--reduce tree", as a command line has it.
  [[nodiscard]] std::string to_text(const OptionValue& value) const;
};

// Functions that make options; OptionTable::add() sets their keys and defaults.
[[nodiscard]] StrategyOption text_option(const char* name, const char* help);
[[nodiscard]] StrategyOption word_option(const char* name, const char* help,
                                         std::vector<std::string> known);
// A whole number of at least 1 and at most the most devices there can be.
[[nodiscard]] StrategyOption count_option(const char* name, const char* help);
// From 0 to 1.
[[nodiscard]] StrategyOption fraction_option(const char* name, const char* help);
// Bytes, as "4MiB".
[[nodiscard]] StrategyOption size_option(const char* name, const char* help);
[[nodiscard]] StrategyOption flag_option(const char* name, const char* help, bool meaning = true,
                                         const char* opposite = "");
// "--fc-devices" has "fc_devices".
[[nodiscard]] std::string key_of(const std::string& name);

// Reading and writing of values. Error with the key for a value of another type.
namespace option_values {
[[nodiscard]] inline OptionValue from(int value) {
  return int64_t{value};
}
template <class Field>
[[nodiscard]] OptionValue from(const Field& value) {
  return value;
}
void read(const std::string& key, const OptionValue& value, bool& field);
void read(const std::string& key, const OptionValue& value, int& field);
void read(const std::string& key, const OptionValue& value, int64_t& field);
void read(const std::string& key, const OptionValue& value, double& field);
void read(const std::string& key, const OptionValue& value, std::string& field);
}  // namespace option_values

// The options that fill a struct: one for each of its members.
template <class Struct>
class OptionTable {
 public:
  // Its default is the member's. The key is that of the option's name, or `key`.
  template <class Field, class Owner>
  OptionTable& add(StrategyOption option, Field Owner::*member, const std::string& key = "") {
    option.key = key.empty() ? key_of(option.name) : key;
    option.standard = option_values::from(Struct{}.*member);
    members_.push_back({option.key, option.standard,
                        [member, name = option.key](const OptionValue& value, Struct& options) {
                          option_values::read(name, value, options.*member);
                        },
                        [member](const Struct& options) -> OptionValue {
                          return option_values::from(options.*member);
                        }});
    options_.push_back(std::move(option));
    return *this;
  }

  // Adds the options of a struct that this one is derived from.
  template <class Base>
  OptionTable& include(const OptionTable<Base>& base) {
    options_.insert(options_.end(), base.options_.begin(), base.options_.end());
    for (const auto& member : base.members_) {
      members_.push_back({member.key, member.standard, member.set, member.get});
    }
    return *this;
  }

  [[nodiscard]] const std::vector<StrategyOption>& options() const { return options_; }
  // Options that are not given keep their defaults; keys that are not in the table are ignored.
  [[nodiscard]] Struct read(const StrategyOptions& values) const {
    Struct result;
    for (const Member& member : members_) {
      const auto found = values.find(member.key);
      if (found != values.end()) member.set(found->second, result);
    }
    return result;
  }
  // Only values that differ from the defaults.
  [[nodiscard]] StrategyOptions write(const Struct& options) const {
    StrategyOptions result;
    for (const Member& member : members_) {
      if (OptionValue value = member.get(options); value != member.standard) {
        result[member.key] = std::move(value);
      }
    }
    return result;
  }

 private:
  template <class Other>
  friend class OptionTable;
  struct Member {
    std::string key;
    OptionValue standard;
    std::function<void(const OptionValue&, Struct&)> set;
    std::function<OptionValue(const Struct&)> get;
  };
  std::vector<StrategyOption> options_;
  std::vector<Member> members_;
};

}  // namespace tandem
