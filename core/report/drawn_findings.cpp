#include "core/report/drawn_findings.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/report/captions.h"
#include "core/report/confusion_page.h"

namespace tandem {
namespace {

constexpr Color white{255, 255, 255}, black{20, 24, 30};

std::string name_of(const RunFigures& run, int64_t label) {
  const auto& names = run.record.class_names;
  const std::string name =
      size_t(label) < names.size() ? drawable(names[size_t(label)]) : std::string();
  return name.empty() ? fmt::format("CLASS {}", label) : name;
}

DrawnPicture zoomed(const DrawnPicture& picture, int64_t zoom) {
  DrawnPicture large = blank_picture(zoom * picture.width, zoom * picture.height, white);
  for (int64_t y = 0; y < picture.height; ++y) {
    for (int64_t x = 0; x < picture.width; ++x) {
      const unsigned char* pixel = &picture.pixels[size_t(3 * (y * picture.width + x))];
      fill(large, x * zoom, y * zoom, zoom, zoom, {pixel[0], pixel[1], pixel[2]});
    }
  }
  return large;
}

DrawnPicture matrix(const RunFigures& run) {
  constexpr int64_t most_named = 30, least_side = 480, letters = 14, text = 2;
  std::vector<int64_t> order;
  const DrawnPicture cells = confusion_picture(run.findings->confusion, order);
  const int64_t zoom = std::max<int64_t>(1, least_side / cells.width);
  const DrawnPicture large = zoomed(cells, zoom);
  if (int64_t(order.size()) > most_named) return large;
  const int64_t margin = letters * letter_width * text;
  DrawnPicture picture = blank_picture(margin + large.width, large.height, white);
  paste(picture, margin, 0, large);
  for (size_t row = 0; row < order.size(); ++row) {
    const int64_t top = int64_t(row) * zoom + (zoom - letter_height * text) / 2;
    draw_text(picture, text, top, text, letters, name_of(run, order[row]), black);
  }
  return picture;
}

DrawnPicture sheet(const RunFigures& run, const std::vector<JudgedPicture>& pictures) {
  constexpr int64_t columns = 4, side = 96, width = 144, line = letter_height + 3;
  constexpr int64_t height = side + 3 * line;
  const auto rows = (int64_t(pictures.size()) + columns - 1) / columns;
  DrawnPicture result = blank_picture(columns * width, rows * height, white);
  for (size_t i = 0; i < pictures.size(); ++i) {
    const JudgedPicture& one = pictures[i];
    const int64_t left = int64_t(i) % columns * width, top = int64_t(i) / columns * height;
    const int64_t longest = std::max(one.picture.width, one.picture.height);
    paste(result, left, top,
          zoomed(one.picture, std::max<int64_t>(1, side / std::max<int64_t>(1, longest))));
    const Judgement& j = one.judgement;
    const int64_t letters = width / letter_width - 1;
    draw_text(result, left, top + side + 3, 1, letters,
              fmt::format("{:.0f} % {}", 100 * j.probability, name_of(run, j.predicted)), black);
    if (j.label != j.predicted) {
      draw_text(result, left, top + side + 3 + line, 1, letters, "IS " + name_of(run, j.label),
                black);
    }
  }
  return result;
}

}  // namespace

std::vector<std::pair<std::string, DrawnPicture>> drawn_findings(const RunFigures& run,
                                                                 bool with_samples) {
  std::vector<std::pair<std::string, DrawnPicture>> pictures;
  if (!run.findings || !run.findings->figures.empty()) return pictures;
  if (run.findings->confusion.classes() > 0) {
    pictures.emplace_back("confusion matrix", matrix(run));
  }
  if (!with_samples) return pictures;
  if (!run.mistakes.empty()) {
    pictures.emplace_back(run.learns_probabilities ? "most confident mistakes" : "mistakes",
                          sheet(run, run.mistakes));
  }
  if (run.learns_probabilities && !run.doubts.empty()) {
    pictures.emplace_back("least certain hits", sheet(run, run.doubts));
  }
  return pictures;
}

}  // namespace tandem
