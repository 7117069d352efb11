/* A library that reads videos. It lies in a module of its own, lib/tandem/video/NAME.so, which is
 * loaded only for a video. Program and module are of one version, so this is no part of the plugin
 * ABI. */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tandem_video_frame {
  double seconds; /* after the first frame */
  int64_t height, width;
  const uint8_t* pixels; /* rows of R,G,B from the top; valid until the next call for the video */
} tandem_video_frame;

/* Functions that can fail return 0; or 1, with the reason as text of at most reason_bytes bytes. */
typedef struct tandem_video_reader {
  uint32_t struct_size;
  const char* name; /* "OpenCV 4.6.0" */
  int32_t (*open)(const char* path, void** video, char* reason, uint32_t reason_bytes);
  /* The next frame that is shown at `from` seconds or later. At the end pixels are NULL. */
  int32_t (*read)(void* video, double from, tandem_video_frame* frame, char* reason,
                  uint32_t reason_bytes);
  void (*close)(void* video);
} tandem_video_reader;

/* The module's one exported symbol, tandem_video_reader_entry. */
typedef const tandem_video_reader* (*tandem_video_reader_function)(void);

#ifdef __cplusplus
}
#endif
