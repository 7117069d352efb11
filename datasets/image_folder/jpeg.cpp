#include "datasets/image_folder/jpeg.h"

#include <csetjmp>
#include <cstdio>
// libjpeg's headers need FILE and size_t before them.
#include <jpeglib.h>
//
#include <jerror.h>

#include <algorithm>
#include <new>

#include "datasets/image_folder/image_headers.h"
#include "plugins/sdk.h"

namespace tandem::image_folder {
namespace {

// Programs write up to some 12 scans. Each may go through all blocks, so a small file can keep a
// decoder busy for long: beyond so many scans only small pictures are decoded, in some 0.2 s.
constexpr int64_t usual_scans = 32;
constexpr double visited_blocks = 25e6;

// The library reports errors by longjmp, so no object with a destructor may live between setjmp and
// it.
struct Trouble {
  jpeg_error_mgr manager{};  // first: libjpeg hands out a pointer to it
  std::jmp_buf way_out{};
  char text[JMSG_LENGTH_MAX] = "";
  bool is_shortage = false;     // of memory, which says nothing about the file
  bool is_unsupported = false;  // by the library, whether the file is whole or not
  const char* remark = "";
};

[[noreturn]] void leave(j_common_ptr info) {
  auto* trouble = reinterpret_cast<Trouble*>(info->err);
  (*info->err->format_message)(info, trouble->text);
  const int code = info->err->msg_code;
  trouble->is_shortage = code == JERR_OUT_OF_MEMORY;
  trouble->is_unsupported = code == JERR_SOF_UNSUPPORTED || code == JERR_BAD_PRECISION ||
                            code == JERR_CONVERSION_NOTIMPL || code == JERR_ARITH_NOTIMPL ||
                            code == JERR_COMPONENT_COUNT || code == JERR_FRACT_SAMPLE_NOTIMPL ||
                            code == JERR_CCIR601_NOTIMPL;
  std::longjmp(trouble->way_out, 1);
}

// If every pixel is there all the same, what is to be said; else null.
const char* remark_of(j_common_ptr info) {
  const auto* decoder = reinterpret_cast<j_decompress_ptr>(info);
  switch (info->err->msg_code) {
    case JWRN_EXTRANEOUS_DATA:
      return "bytes without meaning between its pixels and a marker (JPEG)";
    case JWRN_ADOBE_XFORM:
      return "an unknown mark of Adobe's (JPEG)";
    case JWRN_NOT_SEQUENTIAL:
      return "a scan with a header of another kind (JPEG)";
    // With pixels missing, another warning follows. Of several scans one may be missing, and
    // arithmetic codes may end anywhere.
    case JWRN_JPEG_EOF: {
      const bool has_one_scan = decoder->comps_in_scan > 0 &&
                                decoder->comps_in_scan == decoder->num_components &&
                                decoder->progressive_mode == 0 && decoder->arith_code == 0;
      return has_one_scan ? "no end marker (JPEG)" : nullptr;
    }
    default:
      return nullptr;
  }
}

void take_message(j_common_ptr info, int level) {
  if (level >= 0) return;
  const char* remark = remark_of(info);
  if (remark == nullptr) leave(info);  // the rest of the picture would be gray
  reinterpret_cast<Trouble*>(info->err)->remark = remark;
}

void ignore_message(j_common_ptr) {}

// Programs write CMYK JPEGs inverted, as Adobe does: a byte is the light that an ink lets through.
void mix_inks(const unsigned char* inks, int count, bool gray, unsigned char* pixels) {
  for (int x = 0; x < count; ++x, inks += 4) {
    int bgr[3];
    for (int c = 0; c < 3; ++c) bgr[c] = (inks[2 - c] * inks[3] + 127) / 255;
    if (gray) {
      // ITU-R BT.601, as for every other color picture
      *pixels++ =
          static_cast<unsigned char>((bgr[0] * 1868 + bgr[1] * 9617 + bgr[2] * 4899 + 8192) >> 14);
    } else {
      for (const int value : bgr) *pixels++ = static_cast<unsigned char>(value);
    }
  }
}

}  // namespace

struct Jpeg::State {
  jpeg_decompress_struct decoder{};
  Trouble trouble;
  Bytes file;
  bool known_whole = false;

  [[noreturn]] void refuse() const {
    if (trouble.is_shortage) throw std::bad_alloc();
    if (trouble.is_unsupported) {
      throw sdk::skip("a form of JPEG that is not read here (",
                      static_cast<const char*>(trouble.text),
                      "); convert it: ffmpeg -i FILE FILE.png");
    }
    throw sdk::skip("truncated or damaged JPEG: ", static_cast<const char*>(trouble.text));
  }
  bool read_header();
  bool begin(int& left, int& width);
  // `line`: a spare row.
  bool rows(int top, int bottom, unsigned char* pixels, std::ptrdiff_t stride, unsigned char* line,
            bool gray);
};

bool Jpeg::State::read_header() {
  if (setjmp(trouble.way_out) != 0) return false;
  jpeg_create_decompress(&decoder);
  jpeg_mem_src(&decoder, file.data(), file.size());
  jpeg_read_header(&decoder, TRUE);
  return true;
}

// Starts decoding the columns from `left` on; `left` and `width` become those of the library.
bool Jpeg::State::begin(int& left, int& width) {
  if (setjmp(trouble.way_out) != 0) return false;
  jpeg_start_decompress(&decoder);
  if (width < static_cast<int>(decoder.output_width)) {
    auto x = static_cast<JDIMENSION>(left), w = static_cast<JDIMENSION>(width);
    jpeg_crop_scanline(&decoder, &x, &w);
    left = static_cast<int>(x);
    width = static_cast<int>(w);
  }
  return true;
}

bool Jpeg::State::rows(int top, int bottom, unsigned char* pixels, std::ptrdiff_t stride,
                       unsigned char* line, bool gray) {
  if (setjmp(trouble.way_out) != 0) return false;
  const bool four_inks = decoder.out_color_space == JCS_CMYK;
  JSAMPROW spare = line;
  if (top > 0) jpeg_skip_scanlines(&decoder, static_cast<JDIMENSION>(top));
  for (int y = top; y < bottom; ++y) {
    unsigned char* row = pixels + (y - top) * stride;
    JSAMPROW target = four_inks ? line : row;
    jpeg_read_scanlines(&decoder, &target, 1);
    if (four_inks) mix_inks(line, static_cast<int>(decoder.output_width), gray, row);
  }
  if (known_whole) return true;
  // Reads to the end to find damage after the part. Skipping to the very end would leave the rest
  // unread, and skipping into the last blocks makes libjpeg-turbo 2.1 read one row too many, so the
  // last rows are decoded.
  constexpr unsigned last_rows = 3 * 2 * DCTSIZE;
  const auto rest = [&] { return decoder.output_height - decoder.output_scanline; };
  if (rest() > last_rows) jpeg_skip_scanlines(&decoder, rest() - last_rows);
  while (rest() > 0) jpeg_read_scanlines(&decoder, &spare, 1);
  jpeg_finish_decompress(&decoder);
  return true;
}

Jpeg::Jpeg(Bytes file, bool known_whole) : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.file = file;
  s.known_whole = known_whole;
  s.decoder.err = jpeg_std_error(&s.trouble.manager);
  s.trouble.manager.error_exit = &leave;
  s.trouble.manager.emit_message = &take_message;
  s.trouble.manager.output_message = &ignore_message;
  if (!s.read_header()) {
    jpeg_destroy_decompress(&s.decoder);
    s.refuse();
  }
  const double blocks = buffered_bytes() / sizeof(JBLOCK);
  if (blocks == 0) return;
  const int64_t scans = jpeg_scans(file);
  if (scans <= usual_scans || static_cast<double>(scans) * blocks <= visited_blocks) return;
  jpeg_destroy_decompress(&s.decoder);
  throw sdk::skip("too much work: ", scans, " scans of a picture of ", s.decoder.image_width, "x",
                  s.decoder.image_height, ", and programs write up to ", usual_scans);
}

Jpeg::~Jpeg() {
  jpeg_destroy_decompress(&state_->decoder);
}

picture::Size Jpeg::size() const {
  return {static_cast<int>(state_->decoder.image_width),
          static_cast<int>(state_->decoder.image_height)};
}

int Jpeg::channels() const {
  return state_->decoder.num_components;
}

const char* Jpeg::remark() const {
  return state_->trouble.remark;
}

double Jpeg::buffered_bytes() const {
  jpeg_decompress_struct& decoder = state_->decoder;
  if (jpeg_has_multiple_scans(&decoder) == 0) return 0;
  double blocks = 0;
  for (int i = 0; i < decoder.num_components; ++i) {
    const jpeg_component_info& component = decoder.comp_info[i];
    blocks += static_cast<double>(component.width_in_blocks) * component.height_in_blocks;
  }
  return blocks * sizeof(JBLOCK);
}

picture::View Jpeg::decode(bool gray, int shrink, const picture::Part& part,
                           std::vector<unsigned char>& buffer) {
  State& s = *state_;
  jpeg_decompress_struct& decoder = s.decoder;
  const bool four_inks =
      decoder.jpeg_color_space == JCS_CMYK || decoder.jpeg_color_space == JCS_YCCK;
  decoder.out_color_space = four_inks ? JCS_CMYK : gray ? JCS_GRAYSCALE : JCS_EXT_BGR;
  decoder.scale_num = 1;
  decoder.scale_denom = static_cast<unsigned>(shrink);
  picture::View view;
  view.channels = gray ? 1 : 3;
  view.shrunk = shrink;
  // Two more columns on each side, because at its edges the library interpolates colors as if the
  // picture ended there.
  constexpr int margin = 2;
  const int columns = (size().width + shrink - 1) / shrink;
  int left = std::max(0, part.left - margin);
  int width = std::min(columns, part.right + margin) - left;
  if (!s.begin(left, width)) s.refuse();
  view.left = left;
  view.top = part.top;
  view.width = width;
  view.height = part.bottom - part.top;
  view.stride = static_cast<std::ptrdiff_t>(width) * view.channels;
  const auto bytes = static_cast<size_t>(view.stride) * static_cast<size_t>(view.height);
  const size_t line = 4 * static_cast<size_t>(width);  // of inks, or of an unused row
  if (buffer.size() < bytes + line) buffer.resize(bytes + line);
  view.pixels = buffer.data();
  if (!s.rows(part.top, part.bottom, buffer.data(), view.stride, buffer.data() + bytes, gray)) {
    s.refuse();
  }
  return view;
}

}  // namespace tandem::image_folder
