#include "datasets/image_folder/list_paths.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <unordered_map>

#include "datasets/image_folder/images_below.h"
#include "datasets/picture/data_file.h"
#include "datasets/picture/names.h"

namespace tandem::image_folder {
namespace {

namespace fs = std::filesystem;
using picture::as_utf8;
using picture::lower_case;

// A name as people see it.
std::string key_of(const std::string& name) {
  return lower_case(as_utf8(name));
}

bool is_there(const std::string& path) {
  return picture::path_status(path).exists();
}

// With the characters of "%20" and the like, as of addresses.
std::string without_escapes(const std::string& path) {
  std::string result;
  for (size_t at = 0; at < path.size(); ++at) {
    unsigned code = 0;
    const char* digits = path.data() + at + 1;
    const bool may_be = path[at] == '%' && at + 2 < path.size();
    if (may_be && std::from_chars(digits, digits + 2, code, 16).ptr == digits + 2 && code > 0) {
      result += static_cast<char>(code);
      at += 2;
    } else {
      result += path[at];
    }
  }
  return result;
}

class Finder {
 public:
  explicit Finder(std::string root) : root_(std::move(root)) {}

  // "" if there is no such file, or more than one.
  std::string find(const std::string& path) {
    if (is_there(path)) return path;
    std::string plain = path;
    std::replace(plain.begin(), plain.end(), '\\', '/');
    std::string found = spelled(plain);
    if (const std::string decoded = without_escapes(plain); found.empty() && decoded != plain) {
      found = spelled(decoded);
    }
    // Joined with the root by then, or absolute.
    if (!found.empty() || !fs::path(plain).is_absolute()) return found;
    return spelled((fs::path(root_) / fs::path(plain).relative_path()).string());
  }

 private:
  struct Folder {
    std::unordered_map<std::string, std::string> names, stems;  // by key_of(); "": of several
  };

  const Folder& folder(const std::string& path) {
    const auto [found, is_new] = folders_.try_emplace(path);
    if (!is_new) return found->second;
    const auto add = [](auto& names, const std::string& key, const std::string& name) {
      const auto [place, was_added] = names.emplace(key, name);
      if (!was_added) place->second.clear();
    };
    std::error_code failure;
    for (fs::directory_iterator at(path, failure), end; !failure && at != end;
         at.increment(failure)) {
      const std::string name = at->path().filename().string(), key = key_of(name);
      add(found->second.names, key, name);
      if (picture::is_image(name)) add(found->second.stems, key.substr(0, key.rfind('.')), name);
    }
    return found->second;
  }

  // The path with each of its names as it is on the disk.
  std::string spelled(const std::string& path) {
    if (is_there(path)) return path;
    const fs::path whole(path);
    const std::string name = whole.filename().string();
    const fs::path above = whole.parent_path();
    if (name.empty() || above == whole) return "";
    const std::string parent = above.empty() ? "." : directory(above.string());
    if (parent.empty()) return "";
    const Folder& list = folder(parent);
    const auto named = list.names.find(key_of(name));
    if (named != list.names.end()) {
      return named->second.empty() ? "" : (fs::path(parent) / named->second).string();
    }
    if (picture::is_image(name)) return "";
    const auto stem = list.stems.find(key_of(name));
    if (stem == list.stems.end() || stem->second.empty()) return "";
    return (fs::path(parent) / stem->second).string();
  }

  std::string directory(const std::string& path) {
    const auto [found, is_new] = spelled_.try_emplace(path);
    if (is_new) {
      const std::string result = spelled(path);
      return spelled_[path] = result;
    }
    return found->second;
  }

  std::string root_;
  std::unordered_map<std::string, Folder> folders_;
  std::unordered_map<std::string, std::string> spelled_;  // folders
};

bool are_all_there(const std::vector<Image>& images) {
  constexpr size_t looked_up = 1000;
  const size_t count = std::min(looked_up, images.size());
  for (size_t i = 0; i < count; ++i) {
    if (!is_there(images[i * images.size() / count].path)) return false;
  }
  return true;
}

}  // namespace

std::string absolute_elsewhere(const std::string& path) {
  std::string plain = path;
  const bool has_drive = path.size() > 2 && path[1] == ':' && (path[2] == '\\' || path[2] == '/');
  if (has_drive || path.starts_with("\\\\")) std::replace(plain.begin(), plain.end(), '\\', '/');
  constexpr std::string_view of_file = "file://";
  if (lower_case(plain).starts_with(of_file)) return plain.substr(of_file.size());
  const bool is_address = plain.find("://") != std::string::npos;
  return has_drive || is_address || plain.starts_with('/') ? plain : "";
}

std::string moved_beginning(const std::vector<std::string>& paths, const std::string& root) {
  constexpr size_t looked_up = 10;
  size_t seen = 0;
  for (const std::string& written : paths) {
    const std::string path = absolute_elsewhere(written);
    if (path.empty()) continue;
    if (is_there(path) || seen++ == looked_up) return "";
    const size_t scheme = path.find("://");
    size_t at = scheme == std::string::npos ? 0 : scheme + 2;
    for (at = path.find('/', at + 1); at != std::string::npos; at = path.find('/', at + 1)) {
      if (is_there((fs::path(root) / path.substr(at + 1)).string())) return path.substr(0, at + 1);
    }
  }
  return "";
}

std::string why_missing(const std::string& path) {
  const fs::path whole(path);
  const std::string name = whole.filename().string();
  const fs::path parent = whole.has_parent_path() ? whole.parent_path() : fs::path(".");
  const std::string key = key_of(picture::is_image(name) ? whole.stem().string() : name);
  std::vector<std::string> others;
  std::error_code failure;
  for (fs::directory_iterator at(parent, failure), end; !failure && at != end;
       at.increment(failure)) {
    const std::string other = at->path().filename().string();
    const bool has_stem = picture::is_image(other) && key_of(at->path().stem().string()) == key;
    if (has_stem) others.push_back(other);
  }
  if (others.empty()) return "";
  std::sort(others.begin(), others.end());
  return sdk::text("; its folder has ", picture::list_of(others),
                   others.size() > 1 ? ": which of them is meant is told by the extension"
                                     : ": write the extension as it is there");
}

void find_files(Listing& listing, const std::string& root, const std::string& list) {
  if (are_all_there(listing.images)) return;
  Finder finder(root);
  int64_t changed = 0;
  std::string written, found;
  for (Image& image : listing.images) {
    std::string path = finder.find(image.path);
    if (path.empty() || path == image.path) continue;
    if (changed++ == 0) {
      written = image.path;
      found = path;
    }
    image.path = std::move(path);
  }
  if (changed == 0) return find_in_folders(listing, root, list);
  listing.note(changed, changed == 1 ? " path of the list is" : " paths of the list are",
               " spelled otherwise on the disk: '", written, "' is '", found, "'");
}

}  // namespace tandem::image_folder
