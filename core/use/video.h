// Frames of a video file, read by a library that stands in a module of its own
// (plugins/video/reader.h).
#pragma once

#include <filesystem>

#include "plugins/video/reader.h"

namespace tandem {

// By the ending of its name.
[[nodiscard]] bool is_video(const std::filesystem::path& path);

class Video {
 public:
  // Throws Error for a file whose first bytes are those of no known container, for one that cannot
  // be read, and where no library is there to read it.
  explicit Video(const std::filesystem::path& path);
  ~Video();
  Video(const Video&) = delete;
  Video& operator=(const Video&) = delete;

  // The next frame at `from` seconds or later; its pixels are valid until the next call. False at
  // the end. Throws Error for a file without a frame, and for a frame that cannot be decoded or is
  // over 100 megapixels.
  bool read(double from, tandem_video_frame& frame);

 private:
  const tandem_video_reader* reader_ = nullptr;
  void* video_ = nullptr;
};

}  // namespace tandem
