// Text helpers for every layer of core, besides those of plugins/text.h: similarity of names,
// numbers for people, parsing, and text as other formats write it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plugins/text.h"

namespace tandem {

// " (did you mean 'Pooling'?)", or "" if nothing in `known` is near `name` (edit distance, case
// ignored).
[[nodiscard]] std::string did_you_mean(std::string_view name,
                                       const std::vector<std::string>& known);
// "9.1 GiB", "512 KiB", "17 B"
[[nodiscard]] std::string human_bytes(int64_t bytes);
// "1.2 s", "35.1 ms", "12 us"
[[nodiscard]] std::string human_seconds(double seconds);
[[nodiscard]] std::vector<std::string> split(std::string_view text, char separator);
// The beginning of a text, of at most so many bytes, that ends with a whole character of UTF-8.
[[nodiscard]] std::string first_bytes(const std::string& text, size_t max_bytes);

// Each reads the whole text, or returns false and leaves `value` as it is. Booleans are those of
// protobuf's text format: true, True, t, 1, false, False, f, 0.
[[nodiscard]] bool parse_integer(std::string_view text, int64_t* value);
[[nodiscard]] bool parse_integer(std::string_view text, uint64_t* value);
[[nodiscard]] bool parse_number(std::string_view text, double* value);
[[nodiscard]] bool parse_boolean(std::string_view text, bool* value);

// A string literal in double quotes with the escapes of C: for prototxt and for DOT.
[[nodiscard]] std::string quote(std::string_view text);
// For XML and HTML, in content or between double quotes; UTF-8 whatever the bytes are.
[[nodiscard]] std::string escape_xml(std::string_view bytes);
// RFC 4648, with padding.
[[nodiscard]] std::string to_base64(std::string_view bytes);

}  // namespace tandem
