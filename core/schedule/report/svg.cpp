#include "core/schedule/report/svg.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/base/text/strings.h"
#include "core/base/text/svg.h"

namespace tandem {
namespace {

constexpr double left = 150, right = 40, top = 64, row = 18, gap = 10, width = 1200, bottom = 30;
constexpr int drawn = 2;  // micro-batches

using Track = std::pair<int, StreamKind>;

struct Picture {
  std::map<Track, double> y;  // of each track's row
  double begin = 0, end = 0;  // seconds
  double height = 0;

  [[nodiscard]] double x(double seconds) const {
    return left + (seconds - begin) / (end - begin) * width;
  }
  // How much of it lies within the picture.
  [[nodiscard]] double wide(const TraceEvent& event) const {
    return x(std::min(event.end, end)) - x(std::max(event.start, begin));
  }
  [[nodiscard]] bool shows(const TraceEvent& event) const {
    constexpr double smallest = 0.05;  // of a pixel: too small to be seen
    return wide(event) >= smallest;
  }
};

// From the first compute of the drawn micro-batches to their end, with what others do meanwhile; a
// row for each stream on which there is something to see.
Picture arrange(const Plan& plan, const std::vector<TraceEvent>& events, int64_t last) {
  Picture picture;
  picture.begin = std::numeric_limits<double>::infinity();
  for (const TraceEvent& event : events) {
    if (event.micro_batch > last) continue;
    picture.end = std::max(picture.end, event.end);
    if (plan.tasks.at(size_t(event.task)).streams[0].kind == StreamKind::compute) {
      picture.begin = std::min(picture.begin, event.start);
    }
  }
  if (!std::isfinite(picture.begin) || picture.begin >= picture.end) picture.begin = 0;
  std::set<Track> tracks;
  for (const TraceEvent& event : events) {
    if (!picture.shows(event)) continue;
    for (const StreamId& stream : plan.tasks[size_t(event.task)].streams) {
      tracks.emplace(stream.device, stream.kind);
    }
  }
  double y = top;
  int device = -1;
  for (const Track& track : tracks) {
    if (device >= 0 && track.first != device) y += gap;
    device = track.first;
    picture.y[track] = y;
    y += row;
  }
  picture.height = y + bottom;
  return picture;
}

std::string boxes(const Plan& plan, const std::vector<TraceEvent>& events, const Picture& picture) {
  constexpr double min_width = 0.5;  // pixels
  std::string text;
  for (const TraceEvent& event : events) {
    const Task& task = plan.tasks[size_t(event.task)];
    if (!picture.shows(event)) continue;
    for (const StreamId& stream : task.streams) {
      text += svg_rect(picture.x(std::max(event.start, picture.begin)),
                       picture.y.at({stream.device, stream.kind}) + 1,
                       std::max(picture.wide(event), min_width), row - 2, task.stage.color,
                       fmt::format("{}: {:.3f} ms", task.label, 1e3 * (event.end - event.start)));
    }
  }
  return text;
}

std::string legend(const Plan& plan, const std::vector<TraceEvent>& events,
                   const Picture& picture) {
  std::set<Stage> stages;
  for (const TraceEvent& event : events) {
    if (picture.shows(event)) stages.insert(plan.tasks[size_t(event.task)].stage);
  }
  std::string text;
  double x = left;
  for (const Stage stage : stages) {
    const std::string name(stage.name);
    text += svg_rect(x, 32, 12, 12, stage.color, name);
    text += svg_text(x + 16, 42, name);
    x += 30 + 6.6 * double(name.size());
  }
  return text;
}

// A line every 1, 2 or 5 times a power of ten, about ten of them.
std::string axis(const Picture& picture) {
  const double span = 1e3 * (picture.end - picture.begin);
  double distance = std::pow(10.0, std::floor(std::log10(span / 5)));
  if (span / distance > 25) distance *= 5;
  if (span / distance > 10) distance *= 2;
  std::string text;
  for (double at = 0; at <= span; at += distance) {
    const double x = picture.x(picture.begin + at / 1e3);
    text += svg_line(x, top - 6, x, picture.height - bottom + 6,
                     "stroke=\"#cccccc\" stroke-width=\"0.5\"");
    text += svg_text(x, picture.height - bottom + 18, fmt::format("{:g} ms", at),
                     "text-anchor=\"middle\" fill=\"#555555\"");
  }
  return text;
}

// In lines of at most so many characters, as wide as the picture.
std::vector<std::string> lines_of(const std::vector<std::string>& notes) {
  constexpr size_t most = 200;
  std::vector<std::string> lines;
  for (const std::string& note : notes) {
    bool continues = false;
    for (const std::string& word : split(note, ' ')) {
      if (continues && lines.back().size() + word.size() < most) {
        lines.back() += ' ' + word;
      } else {
        lines.push_back(word);
      }
      continues = true;
    }
  }
  return lines;
}

}  // namespace

std::string to_svg(const Plan& plan, const std::vector<TraceEvent>& events) {
  if (events.empty()) throw error("plan '{}': nothing to draw", plan.strategy);
  int64_t first = std::numeric_limits<int64_t>::max();
  for (const TraceEvent& event : events) first = std::min(first, event.micro_batch);
  const Picture picture = arrange(plan, events, first + drawn - 1);
  std::string text = svg_text(left, 18,
                              fmt::format("{} of {} on {} devices, batch {}: {} steps",
                                          plan.strategy, plan.net, plan.devices, plan.batch, drawn),
                              "font-size=\"14\"");
  text += legend(plan, events, picture) + axis(picture);
  for (const auto& [track, y] : picture.y) {
    text +=
        svg_text(left - 8, y + row - 5, fmt::format("@{} {}", track.first, to_string(track.second)),
                 "text-anchor=\"end\"");
  }
  text += boxes(plan, events, picture);
  constexpr double line_height = 14;
  double y = picture.height;
  for (const std::string& line : lines_of(plan.notes)) {
    text += svg_text(left, y, line, "fill=\"#555555\"");
    y += line_height;
  }
  return svg_document(left + width + right, y, 11, text);
}

}  // namespace tandem
