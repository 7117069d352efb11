// Python's pickles, as far as the state dict of a net needs them: numbers, texts, lists, tuples and
// dicts, and the tensors of PyTorch as their shape and place. Nothing is executed: a pickle names
// classes and functions of Python, of which a table of harmless ones is known, and every other name
// is an Error. What is read takes memory in proportion to the bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tandem {

// A value and those in it are numbers of a PickleTree's list.
struct PickleValue {
  enum class Kind {
    none,
    integer,  // also true and false
    text,
    list,    // also a tuple and a set
    dict,    // items: a key and its value, in turn
    global,  // text: "torch.FloatStorage"
    tensor,  // items: its storage, then shape and strides as two lists; integer: its first value
    other,   // of which nothing is needed: floats, large integers, settings
  };
  Kind kind = Kind::other;
  int64_t integer = 0;
  std::string text;
  std::vector<uint32_t> items;
};

struct PickleTree {
  std::vector<PickleValue> values;
  uint32_t root = 0;
  size_t bytes = 0;  // of the pickle; a file of old form has several, one after the other

  [[nodiscard]] const PickleValue& at(uint32_t number) const { return values[number]; }
  // The value of that key, null if there is none. `dict`: of any kind.
  [[nodiscard]] const PickleValue* find(const PickleValue& dict, std::string_view key) const;
};

constexpr uint64_t max_pickle_bytes = uint64_t{16} << 20;

// Error for a pickle that is damaged, not of a state dict, or larger than a million values. `file`
// is named in messages. A storage is a list that begins with the text "storage".
[[nodiscard]] PickleTree read_pickle(std::string_view bytes, const std::string& file);

}  // namespace tandem
