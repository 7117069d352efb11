// Small text helpers shared by every floor: natural order, near names, sizes for people.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

// "2" before "10", otherwise by bytes: the order of class folders.
[[nodiscard]] bool natural_less(std::string_view a, std::string_view b);
// " (did you mean 'Pooling'?)", or "" if nothing in `known` is near `name` (edit distance, case
// ignored).
[[nodiscard]] std::string did_you_mean(std::string_view name,
                                       const std::vector<std::string>& known);
// "9.1 GiB", "512 KiB", "17 B"
[[nodiscard]] std::string human_bytes(int64_t bytes);
// "1.2 s", "35.1 ms", "12 us"
[[nodiscard]] std::string human_seconds(double seconds);
[[nodiscard]] std::vector<std::string> split(std::string_view text, char separator);
// Whether the bytes are well-formed UTF-8 (RFC 3629).
[[nodiscard]] bool is_utf8(std::string_view text);
// The whole text must be a number of the kind; returns false otherwise.
[[nodiscard]] bool parse_integer(std::string_view text, int64_t* value);
[[nodiscard]] bool parse_number(std::string_view text, double* value);

}  // namespace tandem
