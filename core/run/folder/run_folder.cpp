#include "core/run/folder/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>

#include "core/base/error.h"
#include "core/base/files/files.h"
#include "core/base/text/strings.h"
#include "core/formats/event_file.h"
#include "core/model/file/text_format.h"
#include "core/run/folder/checkpoint.h"
#include "plugins/class_names.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

// Without checkpoints and TensorBoard's files.
constexpr const char* own_files[] = {"run.json",        "net.prototxt",  "untuned_net.prototxt",
                                     "solver.prototxt", "plan.txt",      "metrics.csv",
                                     "log.txt",         "timeline.json", "classes.txt",
                                     "split.csv",       "skipped.txt",   "mean_image.binaryproto",
                                     report_file};

fs::path record_file(const fs::path& folder) {
  return folder / "run.json";
}
fs::path solver_file(const fs::path& folder) {
  return folder / "solver.prototxt";
}
fs::path untuned_net_file(const fs::path& folder) {
  return folder / "untuned_net.prototxt";
}

// The run that may be meant where a folder is none: of that name in runs/, where runs are by
// default, or the newest in the folder. "" if there is none.
fs::path run_near(const fs::path& folder) {
  std::error_code code;
  const fs::path named = "runs" / folder;
  if (path_status(record_file(named)).exists()) return named;
  const fs::path beside = folder.parent_path();
  if (path_status(folder).is_file() && path_status(record_file(beside)).exists()) return beside;
  fs::path newest;
  fs::file_time_type newest_time{};
  for (const fs::path& entry : entries_of(folder, code)) {
    const fs::file_time_type time = fs::last_write_time(record_file(entry), code);
    if (code || (!newest.empty() && time <= newest_time)) continue;
    newest = entry;
    newest_time = time;
  }
  return newest;
}

// Whether the options change the layers of the net or its loss.
bool changes_net(const RunRecord& record) {
  const TrainOptions& o = record.options;
  return !o.freeze.empty() || o.freeze_batch_norm || o.head_rate.value_or(1) != 1 ||
         o.layer_decay != 1 || o.mixup != 0 || o.cutmix != 0 || o.label_smoothing != 0 ||
         !record.class_weights.empty();
}

// A name on each line, or a list of JSON where lines would be read as something else: as comments,
// names with numbers, quotes.
std::string classes_text(const std::vector<std::string>& names) {
  std::string lines, list;
  for (const std::string& name : names) {
    const std::string cell = safe_cell(name);
    lines += cell + "\n";
    list += list.empty() ? "[\"" : ",\n \"";
    for (const char c : cell) list += c == '"' || c == '\\' ? std::string{'\\', c} : std::string{c};
    list += '"';
  }
  return read_class_names(lines).names == names ? lines : list + "]\n";
}

void require_no_run(const fs::path& path) {
  if (!path_status(record_file(path)).exists()) return;
  const char* advice =
      has_checkpoint(path, "last") ? ": go on with it (--resume), or choose another folder (--out)"
      : weights_without_last(path).empty()
          ? " that ended before its first checkpoint: remove the folder, or choose "
            "another (--out)"
          : " with weights, but without last.safetensors, from which it would go "
            "on: choose another folder (--out)";
  throw error("run folder '{}' already holds a run{}", path.string(), advice);
}

// Whether anything is in the folder besides the curve of --find-lr.
bool holds_others(const fs::path& path) {
  for (const fs::path& entry : entries_of(path)) {
    const fs::path name = entry.filename();
    if (name != "find_lr.csv" && name != "find_lr.svg") return true;
  }
  return false;
}

}  // namespace

RunFolder RunFolder::create(const fs::path& given) {
  // "a/.." may be the current folder, once "a" was made.
  const bool goes_up = std::find(given.begin(), given.end(), "..") != given.end();
  const fs::path path = goes_up ? fs::weakly_canonical(absolute_path(given)) : given;
  require_no_run(path);
  const bool was_there = path_status(path).is_folder();
  if (was_there && holds_others(path)) {
    throw error(
        "run folder '{}' holds files that are not a run's: choose an empty or a new folder (--out)",
        path.string());
  }
  make_folders(path, "run folder");
  if (::access(path.c_str(), W_OK | X_OK) != 0) {
    throw error("run folder '{}' cannot be written: choose another with --out", path.string());
  }
  RunFolder folder(path);
  folder.was_there_ = was_there;
  folder.lock();
  require_no_run(path);  // another process may have made one meanwhile
  return folder;
}

// Locks the folder itself: no file remains, and the kernel unlocks it when the process ends.
void RunFolder::lock() {
  const int descriptor = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) {
    throw error("run folder '{}' cannot be opened: {}", path_.string(), std::strerror(errno));
  }
  const auto close = [](const int* held) {
    ::close(*held);
    delete held;
  };
  lock_ = std::shared_ptr<const int>(new int(descriptor), close);
  // A file system without locks gives another error, and the folder stays unlocked.
  if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    throw error(
        "run folder '{}' is in use: another process trains in it. Wait for it, or choose another "
        "folder (--out)",
        path_.string());
  }
}

bool RunFolder::is_in_place() const {
  return lock_ == nullptr || is_at(*lock_, path_);
}

void RunFolder::require_in_place() const {
  if (is_in_place()) return;
  throw error(
      "run folder '{}' was moved, replaced or removed while training: nothing more can be saved. "
      "Where the folder is now, go on from its last checkpoint (--resume)",
      path_.string());
}

void RunFolder::remove_unfinished() const {
  std::error_code ignored;
  for (const fs::path& entry : entries_of(path_)) {
    const fs::path of = entry.stem();
    const bool is_pending = entry == pending_file(path_ / of);
    const bool is_own =
        std::find(std::begin(own_files), std::end(own_files), of) != std::end(own_files);
    if (is_pending && (is_own || of.extension() == ".safetensors")) {
      fs::remove(entry, ignored);
    }
  }
}

void RunFolder::remove_unbegun() const {
  std::error_code ignored;
  for (const char* file : own_files) fs::remove(path_ / file, ignored);
  for (const fs::path& entry : entries_of(path_, ignored)) {
    if (entry.filename().string().starts_with(event_file_prefix)) fs::remove(entry, ignored);
  }
  if (was_there_) return;      // it may be a link, or have rights of its own
  fs::remove(path_, ignored);  // fails where something is left in it
}

bool RunFolder::holds_run(const fs::path& path) {
  return path_status(record_file(path)).exists();
}

RunFolder RunFolder::open(const fs::path& path) {
  if (!holds_run(path)) {
    const fs::path near = run_near(path);
    const std::string hint = near.empty() ? "name the folder that `tandem train --out` wrote"
                                          : fmt::format("did you mean '{}'?", near.string());
    if (path_status(path).is_file()) {
      throw error(
          "'{}' is a file, not a run folder ({}; 'tandem import' makes one of a file of weights)",
          path.string(), hint);
    }
    throw error("folder '{}' holds no run: it has no run.json ({})", path.string(), hint);
  }
  return RunFolder(path);
}

fs::path RunFolder::free_name(const std::string& net) {
  for (int number = 1;; ++number) {
    fs::path path = fs::path("runs") / fmt::format("{}-{}", as_file_name(net), number);
    if (!path_status(path).exists()) return path;
  }
}

void RunFolder::write(const RunRecord& record, const NetDefinition& net,
                      const SolverDefinition& solver) const {
  write_text_file(net_file(), write_net(net));
  write_text_file(
      solver_file(path_),
      fmt::format("net: {}\n{}", quote(net_file().filename().string()), write_solver(solver)));
  write_text_file(path_ / "classes.txt", classes_text(record.class_names));
  RunRecord kept = record;
  if (const auto mean = kept.data_parameters.find("mean_image");
      mean != kept.data_parameters.end()) {
    const fs::path copy = mean_image_file();
    if (!path_status(copy).exists()) write_text_file(copy, read_text_file(mean->second));
    mean->second = copy.filename().string();
  }
  write_text_file(record_file(path_), to_json(kept));
}

void RunFolder::write_net_before_tuning(const RunRecord& record, const NetDefinition& net) const {
  if (changes_net(record)) write_text_file(untuned_net_file(path_), write_net(net));
}

fs::path RunFolder::net_before_tuning(const RunRecord& record) const {
  if (!changes_net(record)) return net_file();
  const fs::path file = untuned_net_file(path_);
  if (path_status(file).is_file()) return file;
  throw error(
      "run '{}' was trained with --freeze, other rates of layers or changed targets, and has no {} "
      "with the "
      "net before these: give the net and the weights alone, as --net NET --weights '{}'",
      path_.string(), file.filename().string(), (path_ / "last.safetensors").string());
}

RunRecord RunFolder::record() const {
  const fs::path file = record_file(path_);
  RunRecord record = run_record_from_json(read_text_file(file), file.string());
  if (const auto mean = record.data_parameters.find("mean_image");
      mean != record.data_parameters.end()) {
    mean->second = absolute_path(mean_image_file()).string();
  }
  return record;
}

NetDefinition RunFolder::net() const {
  return read_net(net_file());
}
SolverDefinition RunFolder::solver() const {
  return read_solver(solver_file(path_));
}

void RunFolder::write_skipped(const std::map<std::string, std::string>& reasons_of_names) const {
  std::string text;
  for (const auto& [name, reason] : reasons_of_names) text += fmt::format("{}: {}\n", name, reason);
  write_text_file(skipped_file(), text);
}

std::vector<BadSample> RunFolder::skipped() const {
  std::vector<BadSample> samples;
  if (!path_status(skipped_file()).exists()) return samples;
  read_lines(skipped_file(), [&](const std::string& line) {
    const size_t end = line.find(": ");
    if (end != std::string::npos) samples.push_back({line.substr(0, end), line.substr(end + 2)});
  });
  return samples;
}

}  // namespace tandem
