// Names of folders and files: which of them are data, and near names for messages. Their order is
// natural_less() of plugins/text.h.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plugins/text.h"

namespace tandem::picture {

// Dot-files and what operating systems and trainers leave behind (__MACOSX, Thumbs.db, wandb, ...):
// never data.
[[nodiscard]] bool is_litter(std::string_view name);
// ASCII letters only.
[[nodiscard]] std::string lower_case(std::string_view text);
// By its extension, in any case: what OpenCV can decode.
[[nodiscard]] bool is_image(std::string_view name);
// ".txt", lower case; "without extension" if there is none.
[[nodiscard]] std::string extension_of(std::string_view name);
// " (did you mean 'cat'?)", or "" if nothing in `known` is near `name`.
[[nodiscard]] std::string did_you_mean(std::string_view name,
                                       const std::vector<std::string>& known);
// A name as people see it: in UTF-8, as Latin-1 if its bytes are not; with composed letters, plain
// blanks and none at its ends. Names are compared in this form.
[[nodiscard]] std::string as_utf8(const std::string& name);
// Whether the letters and digits of a name have this word, in any case: "a_Test-1.b" has "test".
[[nodiscard]] bool has_word(std::string_view name, std::string_view word);
// At most 60 bytes of a text for messages, without control characters.
[[nodiscard]] std::string beginning_of(std::string_view text);
// "a, b, c and 5 more"
[[nodiscard]] std::string list_of(const std::vector<std::string>& names);

}  // namespace tandem::picture
