// Reading the fields of a text-format message. Every refusal is an Error that says whose field it
// is, what was written, what would be right, and file:line:column. `owner` is as "layer 'conv1'
// (Convolution)".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/shape.h"
#include "core/model/text_format.h"

namespace tandem {

// " (net.prototxt:23:5)", or "" without a file.
[[nodiscard]] std::string in_place(const Location& location);

// "<owner>: <field> is '<text>', but must be <right> (file:line:column)"
[[nodiscard]] Error wrong_value(const Field& field, const std::string& owner,
                                const std::string& right);

[[nodiscard]] const std::string& text_of(const Field& field, const std::string& owner);
[[nodiscard]] int64_t integer_of(const Field& field, const std::string& owner);
[[nodiscard]] int64_t positive_of(const Field& field, const std::string& owner);
[[nodiscard]] double number_of(const Field& field, const std::string& owner);  // finite
[[nodiscard]] bool boolean_of(const Field& field, const std::string& owner);
[[nodiscard]] const Message& block_of(const Field& field, const std::string& owner);
[[nodiscard]] int32_t phase_of(const Field& field, const std::string& owner);
// BlobShape: 1 to 4 dims, missing ones are 1.
[[nodiscard]] Shape shape_of(const Field& field, const std::string& owner);

// What every layer may have, whatever its type.
[[nodiscard]] const std::vector<std::string>& common_layer_fields();

// Error with near names for the first field that is none of `known`. `what` is as "field" or
// "field of transform_param".
void require_known(const Message& message, const std::vector<std::string>& known,
                   const std::string& what, const std::string& owner);
[[nodiscard]] Error unknown_field(const Field& field, const std::vector<std::string>& known,
                                  const std::string& what, const std::string& owner);

}  // namespace tandem
