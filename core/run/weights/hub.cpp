#include "core/run/weights/hub.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <vector>

#include "core/base/error.h"
#include "core/base/files/files.h"
#include "core/base/files/sha256.h"
#include "core/base/text/strings.h"
#include "core/formats/json_text.h"
#include "core/run/weights/download.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

// Written last: what the folder holds.
constexpr const char* receipt_file = "fetched.json";

struct RepositoryName {
  std::string name, revision;
};

RepositoryName parts_of(const std::string& repository) {
  if (!is_repository_name(repository)) {
    throw error("'{}' is no repository of weights: OWNER/NAME is, as timm/resnet18.a1_in1k",
                repository);
  }
  const size_t at = repository.find('@');
  if (at == std::string::npos) return {repository, "main"};
  return {repository.substr(0, at), repository.substr(at + 1)};
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// "" without a home folder.
fs::path cache_folder() {
  fs::path cache = variable("XDG_CACHE_HOME");
  if (cache.empty() || cache.is_relative()) {
    const std::string home = variable("HOME");
    if (home.empty()) return {};
    cache = fs::path(home) / ".cache";
  }
  return cache / "tandem";
}

std::string token() {
  std::string token = variable("HF_TOKEN");
  while (!token.empty() && std::isspace(static_cast<unsigned char>(token.back())) != 0) {
    token.pop_back();
  }
  return token;
}

struct RemoteFile {
  std::string name, sha256;  // "": the hub does not name it
  std::optional<uint64_t> size;
};

struct RemoteRepository {
  std::string commit, license;
  std::vector<RemoteFile> files;

  [[nodiscard]] const RemoteFile* find(const std::string& name) const {
    const auto found = std::find_if(files.begin(), files.end(),
                                    [&](const RemoteFile& file) { return file.name == name; });
    return found == files.end() ? nullptr : &*found;
  }
};

// Closes a file, which unlocks it.
struct Closer {
  int descriptor;
  ~Closer() { close(descriptor); }
};

class Hub {
 public:
  explicit Hub(const RepositoryName& repository)
      : repository_(repository), endpoint_(variable("HF_ENDPOINT")), http_(token()) {
    if (endpoint_.empty()) endpoint_ = "https://huggingface.co";
    while (endpoint_.ends_with('/')) endpoint_.pop_back();
    if (!endpoint_.starts_with("https://") && !endpoint_.starts_with("http://")) {
      throw error("HF_ENDPOINT '{}' is no address: one is https://huggingface.co", endpoint_);
    }
  }

  [[nodiscard]] RemoteRepository list() {
    const std::string url = fmt::format("{}/api/models/{}/revision/{}?blobs=true", endpoint_,
                                        repository_.name, repository_.revision);
    const std::string text = get_text(url);
    try {
      return parse(text);
    } catch (const JsonMistake& mistake) {
      throw error("'{}' did not answer as a hub does: {}", url, mistake.what());
    }
  }

  // A small file, as configuration is.
  [[nodiscard]] std::string read(const RemoteRepository& repository, const std::string& name) {
    return get_text(url_of(repository, name));
  }

  // Appends to `file` what it lacks.
  void download(const RemoteRepository& repository, const RemoteFile& remote,
                const fs::path& file) {
    const int descriptor =
        open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (descriptor < 0) {
      throw error("file '{}' cannot be written: {}", file.string(), std::strerror(errno));
    }
    const Closer closer{descriptor};
    const bool is_alone = flock(descriptor, LOCK_EX | LOCK_NB) == 0;
    const std::string failure =
        is_alone ? append(repository, remote, descriptor)
                 : fmt::format("'{}' is being fetched by another process", file.string());
    const int synced = failure.empty() && fsync(descriptor) != 0 ? errno : 0;
    if (synced != 0) {
      throw error("file '{}' cannot be written: {}", file.string(), std::strerror(synced));
    }
    if (!failure.empty()) throw error("{}", failure);
  }

 private:
  [[nodiscard]] std::string url_of(const RemoteRepository& repository,
                                   const std::string& name) const {
    return fmt::format("{}/{}/resolve/{}/{}", endpoint_, repository_.name, repository.commit, name);
  }

  void require(const HttpAnswer& answer, const std::string& url) const {
    if (!answer.failure.empty()) throw error("'{}' cannot be fetched: {}", url, answer.failure);
    if (answer.status == 200 || answer.status == 206) return;
    if (answer.status == 401 || answer.status == 403 || answer.status == 404) {
      throw error(
          "'{}' has no '{}' (revision {}), or not for everyone: then HF_TOKEN must hold a key "
          "(status {})",
          endpoint_, repository_.name, repository_.revision, answer.status);
    }
    throw error("'{}' cannot be fetched: the server answers with status {}", url, answer.status);
  }

  [[nodiscard]] std::string get_text(const std::string& url) {
    std::string text;
    const HttpAnswer answer = http_.get(url, 0, [&](long, const char* data, size_t bytes) {
      text.append(data, bytes);
      return text.size() <= max_text_bytes;
    });
    require(answer, url);
    if (text.size() > max_text_bytes) {
      throw error("'{}' cannot be fetched: its answer has more than {}", url,
                  human_bytes(static_cast<int64_t>(max_text_bytes)));
    }
    return text;
  }

  [[nodiscard]] static RemoteRepository parse(const std::string& text) {
    const nlohmann::json tree = parse_json(text);
    const JsonFields fields(tree);
    RemoteRepository repository;
    repository.commit = fields.get<std::string>("sha");
    const nlohmann::json& list = fields.at("siblings");
    if (!list.is_array()) fields.wrong("siblings", "a list of files");
    for (const nlohmann::json& entry : list) {
      const JsonFields file(entry, "siblings");
      RemoteFile remote;
      remote.name = file.get<std::string>("rfilename");
      if (file.find("size") != nullptr) remote.size = file.get<uint64_t>("size");
      if (const nlohmann::json* lfs = file.find("lfs"); lfs != nullptr && lfs->is_object()) {
        remote.sha256 = file.object("lfs").get<std::string>("sha256");
      }
      repository.files.push_back(remote);
    }
    if (const nlohmann::json* card = fields.find("cardData");
        card != nullptr && card->is_object()) {
      const auto license = card->find("license");
      if (license != card->end() && license->is_string()) license->get_to(repository.license);
    }
    return repository;
  }

  // Returns why it failed, or "".
  [[nodiscard]] std::string append(const RemoteRepository& repository, const RemoteFile& remote,
                                   int descriptor) {
    const std::string url = url_of(repository, remote.name);
    const off_t before = lseek(descriptor, 0, SEEK_END);
    uint64_t done = before > 0 ? static_cast<uint64_t>(before) : 0;
    if (remote.size && done == *remote.size) return "";
    std::string failure;
    bool is_first = true;
    const HttpAnswer answer =
        http_.get(url, done, [&](long status, const char* data, size_t bytes) {
          if (is_first && status == 200 && done > 0) {  // a server that begins again
            if (ftruncate(descriptor, 0) != 0) failure = std::strerror(errno);
            done = 0;
          }
          is_first = false;
          if (failure.empty() && remote.size && bytes > *remote.size - done) {
            failure = fmt::format("it is longer than {} bytes, which the hub says", *remote.size);
          }
          if (failure.empty() && !write_bytes(descriptor, data, bytes)) {
            failure = std::strerror(errno);
          }
          done += bytes;
          return failure.empty();
        });
    if (!failure.empty()) {
      (void)!ftruncate(descriptor, 0);
      return fmt::format("'{}' cannot be stored: {}", url, failure);
    }
    constexpr long out_of_range = 416;
    if (answer.status == out_of_range) (void)!ftruncate(descriptor, 0);
    if (!answer.failure.empty()) {
      return fmt::format("'{}' was interrupted after {}: {}; the same command continues", url,
                         human_bytes(static_cast<int64_t>(done)), answer.failure);
    }
    require(answer, url);
    return "";
  }

  RepositoryName repository_;
  std::string endpoint_;
  HttpClient http_;
};

std::string sha256_of(const fs::path& path) {
  const InputFile file(path);
  std::vector<char> piece(1 << 20);
  Sha256 sum;
  for (uint64_t at = 0; at < file.size();) {
    const size_t bytes = file.read(at, piece.data(), piece.size());
    if (bytes == 0) break;
    sum.add(piece.data(), bytes);
    at += bytes;
  }
  return sum.finish();
}

// Removes the file and throws if it is not what the hub says.
void require_whole(const RemoteFile& remote, const fs::path& file) {
  const uint64_t size = InputFile(file).size();
  std::string wrong;
  if (remote.size && size != *remote.size) {
    wrong = fmt::format("it has {} bytes, the hub says {}", size, *remote.size);
  } else if (!remote.sha256.empty()) {
    const std::string sum = sha256_of(file);
    if (sum != remote.sha256) {
      wrong = fmt::format("its SHA-256 is {}, the hub says {}", sum, remote.sha256);
    }
  }
  if (wrong.empty()) return;
  std::error_code ignored;
  fs::remove(file, ignored);
  throw error("'{}' was fetched and is not what it should be: {}", remote.name, wrong);
}

// Names of files in the repository's own folder only.
bool is_plain_name(const std::string& name) {
  return !name.empty() && name.front() != '.' && std::all_of(name.begin(), name.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '-' || c == '_';
  });
}

// What to fetch: the weights in the best form that is there, and the configuration.
std::vector<RemoteFile> wanted_files(Hub& hub, const RemoteRepository& repository,
                                     const std::string& name) {
  constexpr const char *whole = "model.safetensors", *index = "model.safetensors.index.json",
                       *pickle = "pytorch_model.bin", *config = "config.json";
  std::vector<RemoteFile> wanted;
  if (const RemoteFile* file = repository.find(whole)) {
    wanted.push_back(*file);
  } else if (const RemoteFile* shards = repository.find(index)) {
    const nlohmann::json tree = parse_json(hub.read(repository, index));
    for (const auto& [array, shard] :
         JsonFields(tree).get<std::map<std::string, std::string>>("weight_map")) {
      const RemoteFile* part = repository.find(shard);
      if (part == nullptr || !is_plain_name(shard)) {
        throw error("'{}' of '{}' names the file '{}', which is not there", index, name, shard);
      }
      if (std::none_of(wanted.begin(), wanted.end(),
                       [&](const RemoteFile& file) { return file.name == shard; })) {
        wanted.push_back(*part);
      }
    }
    wanted.push_back(*shards);
  } else if (const RemoteFile* old = repository.find(pickle)) {
    wanted.push_back(*old);
  } else {
    throw error("'{}' has no weights: neither {} nor {} nor {}", name, whole, index, pickle);
  }
  const RemoteFile* configuration = repository.find(config);
  if (configuration == nullptr) throw error("'{}' has no {}", name, config);
  wanted.push_back(*configuration);
  return wanted;
}

std::string fetched_commit(const fs::path& folder) {
  if (!path_status(folder / receipt_file).is_file()) return "";
  try {
    const nlohmann::json tree = parse_json(read_text_file(folder / receipt_file));
    return JsonFields(tree).get<std::string>("commit");
  } catch (const JsonMistake&) {
    return "";
  }
}

}  // namespace

bool is_repository_name(const std::string& text) {
  for (const char* ending : {".safetensors", ".json", ".pth", ".pt", ".bin", ".onnx", ".caffemodel",
                             ".solverstate", ".h5"}) {
    if (text.ends_with(ending)) return false;  // a file that is not there
  }
  const std::string name = text.substr(0, text.find('@'));
  const size_t slash = name.find('/');
  if (slash == std::string::npos || !is_plain_name(name.substr(0, slash)) ||
      !is_plain_name(name.substr(slash + 1))) {
    return false;
  }
  return name.size() == text.size() || is_plain_name(text.substr(name.size() + 1));
}

fs::path cached_folder(const std::string& repository) {
  const RepositoryName parts = parts_of(repository);
  const fs::path cache = cache_folder();
  if (cache.empty()) {
    throw error("there is no folder for fetched weights: XDG_CACHE_HOME or HOME must name one");
  }
  const std::string revision = parts.revision == "main" ? "" : "@" + parts.revision;
  return cache / (parts.name + revision);
}

std::vector<fs::path> cached_folders() {
  std::error_code ignored;
  std::vector<std::pair<fs::file_time_type, fs::path>> found;
  const fs::path cache = cache_folder();
  if (cache.empty()) return {};
  for (const fs::path& owner : entries_of(cache, ignored)) {
    for (const fs::path& folder : entries_of(owner, ignored)) {
      if (fetched_commit(folder).empty()) continue;
      found.emplace_back(fs::last_write_time(folder / receipt_file, ignored), folder);
    }
  }
  std::sort(found.rbegin(), found.rend());
  std::vector<fs::path> folders;
  for (const auto& [time, folder] : found) folders.push_back(folder);
  return folders;
}

std::string example_repository(const std::string& architecture) {
  constexpr std::pair<const char*, const char*> known[] = {
      {"resnet18", "resnet18.a1_in1k"},
      {"resnet34", "resnet34.a1_in1k"},
      {"resnet50", "resnet50.a1_in1k"},
      {"resnet101", "resnet101.a1h_in1k"},
      {"mobilenet_v3_large", "mobilenetv3_large_100.ra_in1k"},
      {"efficientnet_b0", "efficientnet_b0.ra_in1k"},
      {"convnext_tiny", "convnext_tiny.fb_in1k"}};
  for (const auto& [name, repository] : known) {
    if (architecture == name) return fmt::format("timm/{}", repository);
  }
  return "";
}

bool is_cached(const std::string& repository) {
  return !fetched_commit(cached_folder(repository)).empty();
}

std::string fetch_repository(const std::string& repository,
                             const std::function<void(const std::string&)>& note) {
  const RepositoryName parts = parts_of(repository);
  const fs::path folder = cached_folder(repository);
  Hub hub(parts);
  const RemoteRepository remote = hub.list();
  if (!is_plain_name(remote.commit)) {
    throw error("'{}' did not answer as a hub does: its commit is '{}'", parts.name, remote.commit);
  }
  std::vector<RemoteFile> files;
  try {
    files = wanted_files(hub, remote, parts.name);
  } catch (const JsonMistake& mistake) {
    throw error("the index of '{}' is damaged: {}", parts.name, mistake.what());
  }
  const bool is_there = fetched_commit(folder) == remote.commit &&
                        std::all_of(files.begin(), files.end(), [&](const RemoteFile& file) {
                          return path_status(folder / file.name).is_file();
                        });
  if (is_there) return fmt::format("'{}' is there already: {}", repository, folder.string());
  make_folders(folder, "folder of fetched weights");
  for (const RemoteFile& file : files) {
    // Of another version of the repository, another file is begun.
    const std::string version = file.sha256.empty() ? remote.commit : file.sha256;
    if (note && file.size) {
      note(fmt::format("{}: {}", file.name, human_bytes(static_cast<int64_t>(*file.size))));
    }
    const fs::path part = folder / fmt::format("{}.{}.part", file.name, version.substr(0, 16));
    hub.download(remote, file, part);
    require_whole(file, part);
    std::error_code ignored;
    fs::remove(folder / receipt_file, ignored);  // until all files are of one version
    replace_file(part, folder / file.name);
  }
  const nlohmann::json receipt = {{"repository", parts.name}, {"commit", remote.commit}};
  write_text_file(folder / receipt_file, receipt.dump() + "\n");
  for (const fs::path& entry : entries_of(folder)) {
    std::error_code ignored;
    if (entry.extension() == ".part") fs::remove(entry, ignored);
  }
  return fmt::format("fetched '{}'{} into {}", repository,
                     remote.license.empty() ? "" : fmt::format(" (license {})", remote.license),
                     folder.string());
}

}  // namespace tandem
