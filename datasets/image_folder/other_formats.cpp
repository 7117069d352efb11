#include "datasets/image_folder/other_formats.h"

#include <algorithm>
#include <cctype>

#include "datasets/image_folder/tiff_tags.h"
#include "plugins/sdk.h"

namespace tandem::image_folder {
namespace {

using namespace std::string_view_literals;
using picture::Bytes;
using picture::has;

struct Format {
  const char *name, *tool;
  std::string_view extensions;  // each with a space behind it
};

constexpr const char* by_magick = "convert it: magick FILE FILE.png";

constexpr Format apple_png{"an iPhone app's PNG (CgBI)",
                           "convert it: pngcrush -revert-iphone-optimizations FILE FILE.png", ""};
constexpr Format jpeg_xl{"JPEG XL", "convert it: djxl FILE FILE.png", ".jxl "};
constexpr Format jpeg_2000{"JPEG 2000", "convert it: opj_decompress -i FILE -o FILE.png",
                           ".jp2 .j2k .jpx .j2c .jpf "};
constexpr Format jpeg_ls{"JPEG-LS", "convert it: ffmpeg -i FILE FILE.png", ".jls "};
constexpr Format raw{"a camera's RAW",
                     "convert it: dcraw -w -T FILE, or darktable-cli FILE FILE.png",
                     ".cr2 .cr3 .crw .nef .nrw .arw .srf .sr2 .dng .raf .orf .rw2 .pef .srw .x3f "
                     ".3fr .iiq .raw "};
constexpr Format svg{"SVG", "convert it: rsvg-convert FILE -o FILE.png", ".svg .svgz "};
constexpr Format psd{"Photoshop's PSD", "convert it: magick 'FILE[0]' FILE.png", ".psd .psb "};
constexpr Format xcf{"GIMP's XCF", "convert it: xcf2png FILE -o FILE.png", ".xcf "};
constexpr Format dicom{"DICOM", "convert it: dcm2pnm --write-png FILE FILE.png", ".dcm .dicom "};
constexpr Format nifti{"NIfTI", "write its slices as PNG, as with med2image -i FILE -d FOLDER",
                       ".nii "};
constexpr Format fits{"FITS", by_magick, ".fits .fit .fts "};
constexpr Format exr{"OpenEXR", by_magick, ".exr "};
constexpr Format hdr{"Radiance's HDR", by_magick, ".hdr "};
constexpr Format ico{"ICO", "convert it: icotool -x FILE", ".ico .cur "};
constexpr Format tga{"TGA", by_magick, ".tga "};
constexpr Format pcx{"PCX", by_magick, ".pcx "};
constexpr Format dds{"DDS", by_magick, ".dds "};
constexpr Format pfm{"PFM", by_magick, ".pfm "};
constexpr Format pam{"PAM", "convert it: pamtopng FILE > FILE.png", ".pam "};
constexpr Format big_tiff{"BigTIFF", "convert it: tiffcp FILE FILE.tif", ".btf "};
constexpr Format pdf{"PDF", "write its pages as pictures: pdftoppm -png FILE FILE", ".pdf .ai "};
constexpr Format postscript{"PostScript", "convert it: gs -sDEVICE=png16m -o FILE.png FILE",
                            ".ps .eps "};
constexpr Format numpy{"an array of NumPy", "write it as PNG, as with Pillow's Image.fromarray",
                       ".npy .npz "};
constexpr Format hdf5{"HDF5", "write its pictures as files, as with h5py and Pillow",
                      ".h5 .hdf5 .mat "};
constexpr Format film{"a film", "write its pictures as files: ffmpeg -i FILE FILE_%05d.png",
                      ".mp4 .mov .avi .mkv .webm .mpg .mpeg .m4v "};
constexpr Format archive{"an archive", "unpack it", ".zip .gz .tar .tgz .7z .rar .xz .bz2 "};
constexpr Format page{"a web page", "what was meant to be downloaded is elsewhere", ".html .htm "};
constexpr Format pointer{"a pointer of Git LFS", "fetch the file: git lfs pull", ""};

constexpr const Format* all_formats[] = {
    &jpeg_xl,  &jpeg_2000, &jpeg_ls,    &raw,   &svg,  &psd,  &xcf,     &dicom, &nifti,
    &fits,     &exr,       &hdr,        &ico,   &tga,  &pcx,  &dds,     &pfm,   &pam,
    &big_tiff, &pdf,       &postscript, &numpy, &hdf5, &film, &archive, &page};

struct Mark {
  size_t at;
  std::string_view bytes;
  const Format* format;
};
constexpr Mark marks[] = {
    {12, "CgBI"sv, &apple_png},
    {0, "\xff\x0a"sv, &jpeg_xl},
    {0, "\0\0\0\x0cJXL "sv, &jpeg_xl},
    {0, "\0\0\0\x0cjP  "sv, &jpeg_2000},
    {0, "\xff\x4f\xff\x51"sv, &jpeg_2000},
    {0, "\xff\xd8\xff\xf7"sv, &jpeg_ls},
    {4, "ftypcrx "sv, &raw},
    {0, "FUJIFILMCCD-RAW"sv, &raw},
    {0, "IIRO"sv, &raw},
    {0, "IIRS"sv, &raw},
    {0, "IIU\0"sv, &raw},
    {0, "FOVb"sv, &raw},
    {0, "8BPS"sv, &psd},
    {0, "gimp xcf "sv, &xcf},
    {128, "DICM"sv, &dicom},
    {344, "n+1\0"sv, &nifti},
    {0, "SIMPLE  ="sv, &fits},
    {0, "\x76\x2f\x31\x01"sv, &exr},
    {0, "#?RADIANCE"sv, &hdr},
    {0, "#?RGBE"sv, &hdr},
    {0, "\0\0\1\0"sv, &ico},
    {0, "DDS "sv, &dds},
    {0, "PF\n"sv, &pfm},
    {0, "Pf\n"sv, &pfm},
    {0, "P7\n"sv, &pam},
    {0, "II+\0"sv, &big_tiff},
    {0, "MM\0+"sv, &big_tiff},
    {0, "%PDF"sv, &pdf},
    {0, "%!PS"sv, &postscript},
    {0, "\x93NUMPY"sv, &numpy},
    {0, "\x89HDF\r\n\x1a\n"sv, &hdf5},
    {4, "ftyp"sv, &film},
    {8, "AVI "sv, &film},
    {0, "\x1a\x45\xdf\xa3"sv, &film},
    {0, "\0\0\1\xba"sv, &film},
    {0, "PK\3\4"sv, &archive},
    {0, "\x1f\x8b"sv, &archive},
    {0, "7z\xbc\xaf"sv, &archive},
    {0, "Rar!"sv, &archive},
    {257, "ustar"sv, &archive},
    {0, "version https://git-lfs"sv, &pointer},
};

std::string text_of(const Format& format) {
  return sdk::text(format.name, "; ", format.tool);
}

// The first kilobyte in lower case.
std::string beginning(Bytes file) {
  std::string text(reinterpret_cast<const char*>(file.data()), std::min<size_t>(1024, file.size()));
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

// Cameras write a small preview as the first picture of a TIFF, and the RAW behind it.
bool is_raw_in_tiff(Bytes file) {
  constexpr uint64_t subfile_type = 0x00fe, sub_directories = 0x014a, dng_version = 0xc612;
  if (file.size() < 16 || !(has(file, 0, "II*\0", 4) || has(file, 0, "MM\0*", 4))) return false;
  if (has(file, 8, "CR\2", 3)) return true;
  bool is_preview = false, has_more = false, is_dng = false;
  for_each_tag(file, [&](const auto& read, uint64_t tag, size_t at) {
    if (tag == subfile_type) is_preview = (tag_value(read, at) & 1U) != 0;
    if (tag == sub_directories) has_more = true;
    if (tag == dng_version) is_dng = true;
  });
  return is_dng || (is_preview && has_more);
}

}  // namespace

std::string other_format(Bytes file) {
  if (is_raw_in_tiff(file)) return text_of(raw);
  for (const Mark& mark : marks) {
    if (has(file, mark.at, mark.bytes.data(), mark.bytes.size())) return text_of(*mark.format);
  }
  const std::string text = beginning(file);
  if (text.find("<svg") != std::string::npos) return text_of(svg);
  if (text.find("<html") != std::string::npos || text.find("<!doctype html") != std::string::npos) {
    return text_of(page);
  }
  constexpr std::string_view tga_mark = "TRUEVISION-XFILE.";
  const size_t length = tga_mark.size() + 1;
  const bool is_tga =
      file.size() > length && has(file, file.size() - length, tga_mark.data(), tga_mark.size());
  return is_tga ? text_of(tga) : "";
}

std::string other_format_of_extension(std::string_view extension) {
  const std::string whole = std::string(extension) + " ";
  for (const Format* format : all_formats) {
    if (extension.starts_with('.') && format->extensions.find(whole) != std::string_view::npos) {
      return text_of(*format);
    }
  }
  return "";
}

}  // namespace tandem::image_folder
