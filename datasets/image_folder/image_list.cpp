#include "datasets/image_folder/image_list.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <utility>

#include "datasets/image_folder/form_finder.h"
#include "datasets/image_folder/label_texts.h"
#include "datasets/image_folder/list_classes.h"
#include "datasets/image_folder/list_file.h"
#include "datasets/image_folder/list_folder.h"
#include "datasets/image_folder/list_paths.h"
#include "datasets/image_folder/list_repeats.h"
#include "datasets/image_folder/list_root.h"
#include "datasets/image_folder/missing_labels.h"
#include "datasets/picture/classes.h"
#include "datasets/picture/data_file.h"
#include "datasets/picture/file_groups.h"
#include "datasets/picture/names.h"
#include "datasets/picture/split_names.h"

namespace tandem::image_folder {
namespace {

using picture::list_of;

namespace fs = std::filesystem;

struct ListOptions {
  ListingOptions common;
  std::string root;     // where relative paths begin; "": the list's folder
  std::string val;      // the list of validation, of a training list without splits; "": none
  std::string classes;  // a file with a class name on each line, for lists with numbers; "": none
  ListRequest request;
  FormRequest form;
};

class FileLister {
 public:
  explicit FileLister(const ListOptions& options)
      : options_(options),
        classes_(options.classes, options.common.class_names, listing_),
        root_(options.root) {}

  Listing list() {
    const std::string& split = options_.common.split;
    if (picture::path_status(options_.common.source).is_folder()) {
      list_folder(split);
    } else {
      list_file(split);
    }
    find_files(listing_, root_.folder_of(file_).string(), file_);
    require_images(split);
    return std::move(listing_);
  }

 private:
  void list_folder(const std::string& split) {
    const std::string& folder = options_.common.source;
    const std::string val = options_.val.empty() ? list_of_split(folder, "val") : options_.val;
    list_files(split, require_list("train"), val, list_of_split(folder, "test"));
  }

  // A file for each split; "": there is none.
  void list_files(const std::string& split, const std::string& train, const std::string& val,
                  const std::string& test) {
    if (split != "val" && !test.empty() && !has_labels(test, split)) {
      listing_.note("'", test, "' has no labels: not a test split");
      return list_files(split, train, val, "");
    }
    if (split != "train") note_test(split, test, val);
    const ListFile training = read(train);
    classes_.name(form_, training);
    if (split == "train") {
      if (val.empty()) return take_part(training, false);
      take(training);
      return note_further(val);
    }
    if (split == "test" && !test.empty()) return take(read(test));
    if (val.empty()) return take_part(training, true);
    take(read(val));
  }

  // Of the list of validation, too, is said before training what is left out. What is wrong with it
  // is refused where it is read for itself.
  void note_further(const std::string& file) {
    const std::string kept_file = file_;
    const LabelForm kept_form = form_;
    try {
      (void)read(file);
    } catch (const sdk::Refusal&) {
    }
    file_ = kept_file;
    form_ = kept_form;
  }

  // Competitions name the images to be judged in a list of paths alone. What else is wrong with it
  // matters where it is read.
  [[nodiscard]] bool has_labels(const std::string& test, const std::string& split) const {
    ListRequest request = options_.request;
    request.may_lack_labels = true;
    try {
      const ListFile list = read_list(test, request);
      return list.entries.empty() ||
             std::any_of(list.entries.begin(), list.entries.end(), [](const ListEntry& entry) {
               return !std::all_of(entry.labels.begin(), entry.labels.end(), is_missing);
             });
    } catch (const sdk::Refusal&) {
      if (split == "test") throw;
      return true;
    }
  }

  void list_file(const std::string& split) {
    if (!options_.val.empty()) {
      return list_files(split, options_.common.source, options_.val, "");
    }
    const ListFile list = read(options_.common.source);
    if (!list.has_splits) {
      classes_.name(form_, list);
      if (split == "test") note_test(split, "", "");
      return take_part(list, split != "train");
    }
    const auto part = [&](const std::string& name) {
      ListFile result = list;
      result.entries.clear();
      for (const ListEntry& entry : list.entries) {
        if (entry.split == name) result.entries.push_back(entry);
      }
      return result;
    };
    const ListFile train = part("train"), val = part("val"), wanted = part(split);
    if (train.entries.empty()) throw sdk::invalid("no line is of split 'train'");
    classes_.name(form_, train);
    if (split == "train" && val.entries.empty()) return take_part(train, false);
    if (!wanted.entries.empty()) return take(wanted);
    if (split == "test") note_test(split, "", val.entries.empty() ? "" : "val");
    if (val.entries.empty()) return take_part(train, true);
    take(val);
  }

  void note_test(const std::string& split, const std::string& test, const std::string& val) {
    if (split != "test" || !test.empty()) return;
    const double fraction = options_.common.held_out.fraction;
    if (!val.empty()) {
      listing_.note("no test list: tested on the val list");
    } else if (fraction < 1) {
      listing_.note("no test or val list: tested on the ", std::round(fraction * 1000) / 10,
                    " % of every class that training holds out (seed ", options_.common.seed,
                    "); --data-option val_fraction=1 tests all images");
    }
  }

  [[nodiscard]] std::string require_list(const std::string& split) const {
    std::string file = list_of_split(options_.common.source, split);
    if (file.empty()) throw sdk::invalid("has no ", split, ".txt or ", split, ".csv");
    return file;
  }

  // The first list that is read is that of the training, whose form the others have.
  ListFile read(const std::string& file) {
    file_ = file;
    ListFile list = read_list(file, options_.request);
    if (list.entries.empty()) throw sdk::invalid("list '", file, "' names no image");
    leave_out_unlabeled_test(list);
    if (list.entries.empty()) {
      throw sdk::invalid("list '", file, "': every line is of the split test and has no label");
    }
    FormRequest request = options_.form;
    request.model_names = options_.common.class_names;
    request.written_names = classes_.written_names();
    const bool is_further = has_form_;
    if (is_further) {
      request.training = &form_;
      request.task = task_name(form_.task());
      if (form_.kind != LabelForm::Kind::one_class) request.model_names = form_.names;
    }
    form_ = find_form(request, list);
    has_form_ = true;
    if (is_further) classes_.match_words(form_, list);
    for (std::string& note : notes_of_repeats(list, root_.folder_of(file).string())) {
      listing_.notes.push_back(std::move(note));
    }
    for (const std::string& note : form_.notes) listing_.notes.push_back(note);
    return list;
  }

  static const char* task_name(int64_t task) {
    return task == TANDEM_TASK_LABELS   ? "multilabel"
           : task == TANDEM_TASK_VALUES ? "regression"
                                        : "labels";
  }

  void take(const ListFile& list) {
    root_.look_at(list, listing_);
    for (const ListEntry& entry : list.entries) take_one(list, entry);
    note_missing();
  }

  void note_missing() {
    if (listing_.task == TANDEM_TASK_CLASSES) listing_.note_missing_classes("'" + file_ + "' ");
  }

  // The folds that the list itself has, of which the one that is asked for is held out.
  void take_fold(const ListFile& list, bool held_out) {
    const picture::HeldOut& share = options_.common.held_out;
    std::set<std::string> distinct;
    for (const ListEntry& entry : list.entries) distinct.insert(entry.fold);
    std::vector<std::string> folds(distinct.begin(), distinct.end());
    std::sort(folds.begin(), folds.end(), natural_less);
    if (static_cast<int64_t>(folds.size()) != share.parts) {
      throw sdk::invalid("fold=", share.part, "/", share.parts, ": the column '", list.fold_column,
                         "' of '", list.file, "' has ", folds.size(), " folds (", list_of(folds),
                         "): --kfold ", folds.size(),
                         ", or the data option fold_column=none to draw them");
    }
    const std::string& wanted = folds[static_cast<size_t>(share.part - 1)];
    for (const ListEntry& entry : list.entries) {
      if ((entry.fold == wanted) == held_out) take_one(list, entry);
    }
    if (held_out) return;
    listing_.note("the folds are those of the column '", list.fold_column, "' of '", list.file,
                  "': '", wanted, "' is held out");
    note_missing();
  }

  // Of images with labels or numbers as of one class.
  void take_part(const ListFile& list, bool held_out) {
    listing_.split_is_drawn = true;
    root_.look_at(list, listing_);
    const bool has_folds = !list.fold_column.empty();
    if (has_folds && options_.common.held_out.parts > 0) return take_fold(list, held_out);
    if (has_folds && !held_out) {
      listing_.note("the column '", list.fold_column, "' of '", list.file,
                    "' has folds, which --kfold takes; without it images are held out by chance");
    }
    const bool has_classes = listing_.task == TANDEM_TASK_CLASSES;
    std::vector<int64_t> labels;
    for (const ListEntry& entry : list.entries) labels.push_back(label_of(list, entry));
    const std::vector<std::string> files = root_.files_of(list);
    const double fraction = options_.common.held_out.fraction;
    const std::vector<std::string> one{""};
    for (const size_t i :
         picture::part_of_files(files, labels, has_classes ? listing_.class_names : one,
                                options_.common.held_out, options_.common.seed, held_out)) {
      take_one(list, list.entries[i]);
    }
    if (!held_out) {
      listing_.note("no list of validation images: ", std::round(fraction * 1000) / 10,
                    has_classes ? " % of every class are held out (seed "
                                : " % of the images are held out (seed ",
                    options_.common.seed, ")", list_beside(list.file));
      note_missing();
      const size_t count = picture::count_files(files);
      if (count == files.size()) return;
      listing_.note("'", list.file, "': ", files.size(), " lines name ", count,
                    " images: all lines of an image are held out, or none");
    }
  }

  // A list of validation beside that of training, which is read only where it is named.
  static std::string list_beside(const std::string& file) {
    const fs::path path(file);
    if (picture::split_of_name(path.stem().string()) != "train") return "";
    const std::string folder = path.has_parent_path() ? path.parent_path().string() : ".";
    for (const std::string& one : lists_of_split(folder, "val")) {
      return sdk::text("; --data-option val=", one, " takes the list beside it");
    }
    return "";
  }

  [[nodiscard]] int64_t label_of(const ListFile& list, const ListEntry& entry) const {
    return classes_.label_of(form_, list, entry);
  }

  void take_one(const ListFile& list, const ListEntry& entry) {
    Image image{root_.path_of(entry), label_of(list, entry), {}};
    if (listing_.task != TANDEM_TASK_CLASSES) image.targets = targets_of(form_, list, entry);
    listing_.images.push_back(std::move(image));
  }

  void require_images(const std::string& split) const {
    const picture::HeldOut& share = options_.common.held_out;
    if (listing_.images.empty() && split != "train" && share.is_share()) {
      throw sdk::invalid(share.why_none(), "; is that the column of the classes (labels=COLUMN)?");
    }
    if (listing_.images.empty()) {
      throw sdk::invalid("val_fraction ", options_.common.held_out.fraction,
                         " leaves no image for ", split == "train" ? "training" : "validation");
    }
    root_.require_some(listing_.images, file_);
  }

  const ListOptions& options_;
  Listing listing_;
  ListClasses classes_;
  ListRoot root_;
  std::string file_;  // read last
  LabelForm form_;    // of that file
  bool has_form_ = false;
};

}  // namespace

ImageList::ImageList(const tandem_dataset_request& request, const sdk::Attributes& attributes) {
  ListOptions options;
  options.common = listing_options(request, attributes);
  options.root = attributes.text("root");
  options.val = attributes.text("val");
  options.classes = attributes.text("classes");
  options.request.labels = attributes.text("labels");
  options.request.fold_column = attributes.text("fold_column");
  options.form.task = attributes.text("task");
  // Of a run that has learned, its own names are known, and the task is given by the program.
  options.form.takes_any_name = options.form.task == "labels" && options.common.class_names.empty();
  options.form.missing = attributes.text("missing");
  begin(request, attributes, FileLister(options).list());
}

std::vector<sdk::Parameter> ImageList::parameters() {
  constexpr const char* block = "image_list_param";
  std::vector<sdk::Parameter> parameters = parameters_of(block);
  parameters.push_back(sdk::word(block, "root")
                           .by_default("")
                           .help("folder where relative paths begin; default: the list's own"));
  parameters.push_back(sdk::word(block, "val")
                           .by_default("")
                           .help("the list of validation, where the data are a training list"));
  parameters.push_back(
      sdk::word(block, "classes")
          .by_default("")
          .help("file with a class name on each line, for lists with class numbers"));
  parameters.push_back(sdk::word(block, "task")
                           .one_of("auto|labels|multilabel|regression")
                           .by_default("auto")
                           .help("what the images have: a class, several labels, or numbers"));
  parameters.push_back(sdk::word(block, "labels")
                           .by_default("")
                           .help("headings of the columns with labels or numbers, with commas"));
  parameters.push_back(sdk::word(block, "fold_column")
                           .by_default("")
                           .help("heading of the column with the fold of each image, for fold "
                                 "(--kfold); default: one that is called so; none: there is none"));
  parameters.push_back(sdk::word(block, "missing")
                           .one_of("refuse|skip|zero")
                           .by_default("refuse")
                           .help("lines that lack a value: refused, left out, or of labels 0"));
  return parameters;
}

bool ImageList::recognizes(const std::string& source) {
  const PathStatus status = picture::path_status(source);
  if (status.is_folder()) {
    return !lists_of_split(source, "train").empty() && !has_split_folder(source);
  }
  return status.exists() && has_list_extension(fs::path(source).filename().string());
}

}  // namespace tandem::image_folder
