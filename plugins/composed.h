// Letters with accents in one form: "é" is one character or "e" and an accent, which look alike and
// differ in bytes, as between the file systems of macOS and Linux. Of both sides, so that core and
// data sets find the same names; by ICU.
#pragma once

#include <unicode/unorm2.h>
#include <unicode/ustring.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "plugins/plain_text.h"

namespace tandem {

namespace composed {

inline std::string normalized(const std::string& text, const UNormalizer2* form) {
  const auto is_ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
  if (std::all_of(text.begin(), text.end(), is_ascii)) return text;
  UErrorCode status = U_ZERO_ERROR;
  std::u16string wide(text.size(), u'\0'), result(4 * text.size(), u'\0');
  int32_t length = 0;
  u_strFromUTF8(wide.data(), static_cast<int32_t>(wide.size()), &length, text.data(),
                static_cast<int32_t>(text.size()), &status);
  length = unorm2_normalize(form, wide.data(), length, result.data(),
                            static_cast<int32_t>(result.size()), &status);
  std::string bytes(3 * static_cast<size_t>(std::max(0, length)), '\0');
  int32_t count = 0;
  u_strToUTF8(bytes.data(), static_cast<int32_t>(bytes.size()), &count, result.data(), length,
              &status);
  if (U_FAILURE(status)) return text;  // no well-formed UTF-8
  bytes.resize(static_cast<size_t>(count));
  return bytes;
}

}  // namespace composed

// UTF-8 in the composed form (NFC) and in the decomposed one (NFD). Any other text as it is.
[[nodiscard]] inline std::string to_composed(const std::string& text) {
  UErrorCode status = U_ZERO_ERROR;
  return composed::normalized(text, unorm2_getNFCInstance(&status));
}
[[nodiscard]] inline std::string to_decomposed(const std::string& text) {
  UErrorCode status = U_ZERO_ERROR;
  return composed::normalized(text, unorm2_getNFDInstance(&status));
}

// A name as it is compared with others: composed letters, plain blanks, none at its ends. One of
// blanks alone stays as it is.
[[nodiscard]] inline std::string plain_name(std::string_view name) {
  const std::string_view text = without_blanks(name);
  return to_composed(with_plain_blanks(text.empty() ? name : text));
}

}  // namespace tandem
