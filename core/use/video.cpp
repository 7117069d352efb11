#include "core/use/video.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "core/base/error.h"
#include "core/base/files/files.h"
#include "core/use/library_modules.h"

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

// By its first bytes. ffmpeg chooses by the content, too, and also reads lists of other files.
bool is_container(std::string_view begin) {
  using namespace std::string_view_literals;
  const auto has = [&](size_t at, std::string_view bytes) {
    return begin.size() >= at && begin.substr(at).starts_with(bytes);
  };
  constexpr std::array beginnings{"\x1a\x45\xdf\xa3"sv,  // Matroska, WebM
                                  "FLV\x01"sv,
                                  "OggS"sv,
                                  "\x30\x26\xb2\x75\x8e\x66\xcf\x11"sv,  // WMV
                                  "\0\0\x01\xba"sv,                      // MPEG program stream
                                  "\0\0\x01\xb3"sv};                     // MPEG video alone
  constexpr std::array boxes{"ftyp"sv, "moov"sv, "mdat"sv, "wide"sv, "free"sv, "skip"sv};
  const auto has_packets = [&](size_t first, size_t bytes) {  // of an MPEG transport stream
    return has(first, "G") && has(first + bytes, "G") && has(first + 2 * bytes, "G");
  };
  return std::any_of(beginnings.begin(), beginnings.end(), [&](auto one) { return has(0, one); }) ||
         std::any_of(boxes.begin(), boxes.end(), [&](auto one) { return has(4, one); }) ||
         (has(0, "RIFF") && has(8, "AVI ")) || has_packets(0, 188) || has_packets(4, 192);
}

void require_container(const std::filesystem::path& path) {
  std::array<char, 400> begin{};
  const size_t bytes = InputFile(path, "video").read(0, begin.data(), begin.size());
  if (is_container({begin.data(), bytes})) return;
  throw Error("not a video that is read here (MP4, MOV, MKV, WebM, AVI, FLV, MPEG, Ogg, WMV)");
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

Video::Video(const std::filesystem::path& path) {
  require_container(path);
  reader_ = find_video_reader();
  char reason[video_reason_bytes] = "";
  if (reader_->open(path.c_str(), &video_, reason, sizeof(reason)) != 0) throw error("{}", reason);
}

Video::~Video() {
  reader_->close(video_);
}

bool Video::read(double from, tandem_video_frame& frame) {
  char reason[video_reason_bytes] = "";
  if (reader_->read(video_, from, &frame, reason, sizeof(reason)) != 0) throw error("{}", reason);
  if (frame.pixels == nullptr) return false;
  constexpr int64_t pixel_limit = 100'000'000;  // as of images
  if (frame.width > pixel_limit / std::max<int64_t>(frame.height, 1)) {
    throw error("too large: {}x{} is over the limit of 100 megapixels", frame.width, frame.height);
  }
  return true;
}

}  // namespace tandem
