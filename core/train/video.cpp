#include "core/train/video.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "core/base/error.h"
#include "core/train/library_modules.h"

namespace tandem {
namespace {

constexpr size_t video_reason_bytes = 400;

const tandem_video_reader* find_video_reader() {
  const LibraryModules modules =
      find_library_modules("video", "tandem_video_reader_entry", sizeof(tandem_video_reader));
  if (!modules.tables.empty()) return static_cast<const tandem_video_reader*>(modules.tables[0]);
  if (!modules.failures.empty()) throw Error(modules.failures[0]);
  throw Error(
      "Tandem was built without a library that reads videos (docs/guide/install.md names it)");
}

}  // namespace

bool is_video(const std::filesystem::path& path) {
  constexpr std::array<std::string_view, 12> endings{".avi", ".flv", ".m4v",  ".mkv",
                                                     ".mov", ".mp4", ".mpeg", ".mpg",
                                                     ".mts", ".ogv", ".webm", ".wmv"};
  std::string ending = path.extension().string();
  for (char& c : ending) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return std::find(endings.begin(), endings.end(), ending) != endings.end();
}

Video::Video(const std::filesystem::path& path) : reader_(find_video_reader()) {
  char reason[video_reason_bytes] = "";
  if (reader_->open(path.c_str(), &video_, reason, sizeof(reason)) != 0) throw error("{}", reason);
}

Video::~Video() {
  reader_->close(video_);
}

bool Video::read(double from, tandem_video_frame& frame) {
  char reason[video_reason_bytes] = "";
  if (reader_->read(video_, from, &frame, reason, sizeof(reason)) != 0) throw error("{}", reason);
  return frame.pixels != nullptr;
}

}  // namespace tandem
