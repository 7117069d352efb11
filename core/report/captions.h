// Text in pictures: words of plain capital letters, as in a picture that tells its class and in a
// confusion matrix. Names of other letters lose their accents; of other scripts there is no text.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "core/report/display.h"

namespace tandem {

using Color = std::array<unsigned char, 3>;

// Pixels of a letter of size 1, with the space after it.
constexpr int64_t letter_width = 6, letter_height = 7;

// The text as it can be drawn; "" where a letter of it cannot be.
[[nodiscard]] std::string drawable(const std::string& text);

[[nodiscard]] DrawnPicture blank_picture(int64_t width, int64_t height, const Color& color);
// Parts beyond the picture are left out.
void fill(DrawnPicture& picture, int64_t left, int64_t top, int64_t width, int64_t height,
          const Color& color);
void paste(DrawnPicture& picture, int64_t left, int64_t top, const DrawnPicture& part);
// `size`: pixels of the side of each point of a letter. At most `letters` of the text, of which the
// last two are points where it is longer.
void draw_text(DrawnPicture& picture, int64_t left, int64_t top, int64_t size, int64_t letters,
               const std::string& text, const Color& color);

}  // namespace tandem
