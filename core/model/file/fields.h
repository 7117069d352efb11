// Reading the fields of a text-format message. Every refusal is an Error that names the owner of
// the field, the value, what would be right, and file:line:column. `owner` is as "layer 'conv1'
// (Convolution)".
#pragma once

#include <cstdint>
#include <functional>
#include <string>
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

// A filler message: { type: "gaussian" std: 0.01 }.
[[nodiscard]] Filler read_filler(const Message& message, const std::string& owner);

}  // namespace tandem
