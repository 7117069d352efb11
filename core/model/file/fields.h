// Reading the fields of a text-format message, and tables that say how the members of a struct are
// read and written. Every refusal is an Error that names the owner of the field, the value, what
// would be right, and file:line:column. `owner` is as "layer 'conv1' (Convolution)".
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/numbers/shape.h"
#include "core/model/file/text_format.h"
#include "core/plugin/attributes.h"

namespace tandem {

// "<owner>: <field> is '<text>', but must be <right> (file:line:column)"
[[nodiscard]] Error wrong_value(const Field& field, const std::string& owner,
                                const std::string& right);

[[nodiscard]] const std::string& text_of(const Field& field, const std::string& owner);
// A text that is one of `known`.
[[nodiscard]] const std::string& word_of(const Field& field, const std::string& owner,
                                         const std::vector<std::string>& known);
[[nodiscard]] int64_t integer_of(const Field& field, const std::string& owner);
[[nodiscard]] int64_t positive_of(const Field& field, const std::string& owner);
// Finite as a float.
[[nodiscard]] double number_of(const Field& field, const std::string& owner);
[[nodiscard]] bool boolean_of(const Field& field, const std::string& owner);
[[nodiscard]] const Message& block_of(const Field& field, const std::string& owner);
// The field's block, to be changed. Copies of a definition share their blocks, so it becomes a
// block of this field's own.
Message& own_block(Field& field);
[[nodiscard]] int32_t phase_of(const Field& field, const std::string& owner);
// BlobShape: 1 to 4 dims, missing ones are 1.
[[nodiscard]] Shape shape_of(const Field& field, const std::string& owner);

[[nodiscard]] inline bool is_among(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}
// The fields that every layer may have, whatever its type.
[[nodiscard]] const std::vector<std::string>& common_layer_fields();

// Error with near names for the first field that is not in `known`. `what` is as "field" or "field
// of transform_param".
void require_known(const Message& message, const std::vector<std::string>& known,
                   const std::string& what, const std::string& owner);
// Error if a field with one of these names is given twice.
void require_once(const Message& message, const std::vector<std::string>& names,
                  const std::string& owner);
// Of a field that has one value.
[[nodiscard]] Error given_twice(const Field& first, const Field& second, const std::string& owner);
[[nodiscard]] Error unknown_field(const Field& field, const std::vector<std::string>& known,
                                  const std::string& what, const std::string& owner);

struct FieldReader {
  const char* name;
  std::function<void(const Field&)> read;
  bool repeats = false;  // it may be given several times
};
// Calls the reader of each field of the message; the same Error for a field that has none, and one
// for a field that is given again and may not be.
void read_fields(const Message& message, const std::string& what, const std::string& owner,
                 const std::vector<FieldReader>& readers);

// Reads a field into a variable, as its type says. Structs that are a block have such functions
// where they are declared.
inline void read_value(const Field& field, const std::string& owner, std::string& value) {
  value = text_of(field, owner);
}
inline void read_value(const Field& field, const std::string& owner, int64_t& value) {
  value = integer_of(field, owner);
}
inline void read_value(const Field& field, const std::string& owner, double& value) {
  value = number_of(field, owner);
}
inline void read_value(const Field& field, const std::string& owner, bool& value) {
  value = boolean_of(field, owner);
}
template <class T>
void read_value(const Field& field, const std::string& owner, std::optional<T>& value) {
  read_value(field, owner, value.emplace());
}
template <class T>
void read_value(const Field& field, const std::string& owner, std::vector<T>& values) {
  T value{};
  read_value(field, owner, value);
  values.push_back(std::move(value));
}

// Appends the field that read_value() reads back: none for an empty optional, one for each element
// of a vector.
template <class T>
void write_value(Message& to, const char* name, const T& value) {
  to.add(name, fmt::format("{}", value), std::is_same_v<T, std::string>);
}
void write_value(Message& to, const char* name, const Shape& shape);
template <class T>
void write_value(Message& to, const char* name, const std::optional<T>& value) {
  if (value) write_value(to, name, *value);
}
template <class T>
void write_value(Message& to, const char* name, const std::vector<T>& values) {
  for (const T& value : values) write_value(to, name, value);
}

// A field of the block that is a struct S: how it is read, and how it is written.
template <class S>
struct MemberField {
  const char* name;
  std::function<void(const Field&, const std::string& owner, S&)> read;
  std::function<void(const S&, Message&)> write = {};  // empty: it is not written
  bool repeats = false;
};
template <class S>
using MemberFields = std::vector<MemberField<S>>;

template <class T>
constexpr bool is_vector = false;
template <class T>
constexpr bool is_vector<std::vector<T>> = true;

// The field of a member. A vector repeats. An empty text and a 0 of the integers, the values of
// absent fields, are not written.
template <class S, class T>
MemberField<S> member(const char* name, T S::*at) {
  return {name,
          [at](const Field& f, const std::string& owner, S& s) { read_value(f, owner, s.*at); },
          [=](const S& s, Message& to) {
            if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, int64_t>) {
              if (s.*at == T{}) return;
            }
            write_value(to, name, s.*at);
          },
          is_vector<T>};
}

// The numbers that a field may be.
struct Range {
  bool (*holds)(double);
  const char* right;  // "at least 0"
};
constexpr Range not_negative{[](double value) { return value >= 0; }, "at least 0"};

template <class S, class T>
MemberField<S> member(const char* name, T S::*at, const Range& range) {
  MemberField<S> field = member(name, at);
  field.read = [=](const Field& f, const std::string& owner, S& s) {
    read_value(f, owner, s.*at);
    if (!range.holds(static_cast<double>(s.*at))) throw wrong_value(f, owner, range.right);
  };
  return field;
}
// A text that is one of `known`.
template <class S>
MemberField<S> member(const char* name, std::string S::*at, const std::vector<std::string>& known) {
  MemberField<S> field = member(name, at);
  field.read = [=](const Field& f, const std::string& owner, S& s) {
    s.*at = word_of(f, owner, known);
  };
  return field;
}

template <class S>
void read_fields(const Message& message, const std::string& what, const std::string& owner,
                 const MemberFields<S>& fields, S& to) {
  std::vector<FieldReader> readers;
  for (const MemberField<S>& one : fields) {
    readers.push_back(
        {one.name, [&](const Field& field) { one.read(field, owner, to); }, one.repeats});
  }
  read_fields(message, what, owner, readers);
}
// The same of a block, whose fields are "field of param".
template <class S>
void read_block(const Field& field, const std::string& owner, const MemberFields<S>& fields,
                S& to) {
  read_fields(block_of(field, owner), "field of " + field.name, owner, fields, to);
}
template <class S>
void write_fields(const S& from, const MemberFields<S>& fields, Message& to) {
  for (const MemberField<S>& field : fields) {
    if (field.write) field.write(from, to);
  }
}

// A filler message: { type: "gaussian" std: 0.01 }.
[[nodiscard]] Filler read_filler(const Message& message, const std::string& owner);

// Sets a field of a layer's block, of which there may be several, or none yet.
void set_in_block(Message& layer, const std::string& block, const std::string& name,
                  const std::string& value);

}  // namespace tandem
