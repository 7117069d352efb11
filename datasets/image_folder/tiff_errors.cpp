#include "datasets/image_folder/tiff_errors.h"

#include <dlfcn.h>

#include <array>
#include <cstdarg>
#include <opencv2/imgcodecs.hpp>
#include <string_view>

namespace tandem::image_folder {
namespace {

using Handler = void (*)(const char* module, const char* format, std::va_list arguments);
using SetHandler = Handler (*)(Handler handler);

thread_local bool has_failed = false;

// Not of a tag with a value that there is not: libtiff goes on without it.
void note(const char* module, const char*, std::va_list) {
  const bool is_of_tag = module != nullptr && std::string_view(module) == "_TIFFVSetField";
  if (!is_of_tag) has_failed = true;
}

// libtiff's function, in what this module was loaded with; null: there is none. Tandem does not
// link libtiff itself, as it must be the one that OpenCV uses.
template <class Function>
Function find_function(const char* name) {
  Dl_info own{};
  if (::dladdr(reinterpret_cast<const void*>(&note), &own) == 0) return nullptr;
  void* module = ::dlopen(own.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  if (module == nullptr) module = ::dlopen(nullptr, RTLD_LAZY);
  if (module == nullptr) return nullptr;
  const auto function = reinterpret_cast<Function>(::dlsym(module, name));
  ::dlclose(module);
  return function;
}

// OpenCV sets a handler, which drops all errors, when it decodes its first TIFF.
bool set_handler() {
  const std::array<unsigned char, 8> no_picture{'I', 'I', '*', 0, 8, 0, 0, 0};
  const cv::Mat bytes(1, static_cast<int>(no_picture.size()), CV_8U,
                      const_cast<unsigned char*>(no_picture.data()));
  static_cast<void>(cv::imdecode(bytes, cv::IMREAD_COLOR));
  const auto set = find_function<SetHandler>("TIFFSetErrorHandler");
  if (set != nullptr) set(&note);
  return set != nullptr;
}

}  // namespace

TiffErrors::TiffErrors() {
  static const bool is_set = set_handler();
  static_cast<void>(is_set);
  has_failed = false;
}

bool TiffErrors::any() const {
  return has_failed;
}

std::optional<bool> decompresses_tiff(uint64_t compression) {
  static const auto is_configured = find_function<int (*)(uint16_t)>("TIFFIsCODECConfigured");
  if (is_configured == nullptr) return std::nullopt;
  return compression <= 0xffff && is_configured(static_cast<uint16_t>(compression)) != 0;
}

}  // namespace tandem::image_folder
