#include "datasets/image_folder/image_folder.h"
#include "datasets/picture/data_file.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <unordered_map>

#include "datasets/image_folder/class_check.h"
#include "datasets/image_folder/folder.h"
#include "datasets/image_folder/name_prefix.h"
#include "datasets/picture/classes.h"
#include "datasets/picture/names.h"

namespace tandem::image_folder {
namespace {

using picture::as_utf8;
using picture::choose_held_out;
using picture::did_you_mean;
using picture::extension_of;
using picture::list_of;

namespace fs = std::filesystem;

class Lister {
 public:
  explicit Lister(const ListingOptions& options)
      : options_(options),
        layout_(find_layout(options.source, options.classes_only, options.by_names)),
        folders_(layout_) {
    listing_.notes = layout_.notes;
  }

  Listing list() {
    const std::string& split = options_.split;
    if (split == "train") {
      list_train();
    } else if (split == "val" || (split == "test" && layout_.test.empty())) {
      list_val();
    } else if (split == "test") {
      name_classes();
      take_folder(layout_.test);
    } else {
      throw sdk::invalid("split '", split, "' is not one of train, val, test");
    }
    note_left_out();
    return std::move(listing_);
  }

 private:
  void list_train() {
    require_train();
    const std::vector<ClassFolder> classes = read_training_classes();
    const std::string joined =
        options_.classes_only || options_.by_names ? "" : text_of_subfolders(classes);
    if (!joined.empty()) listing_.note(joined);
    if (layout_.val.empty()) {
      take_part(classes, false);
      listing_.note("no val/ folder: ", percent(),
                    " of the images of every class are held out (seed ", options_.seed, ")");
    } else {
      take_all(layout_.train, classes);
    }
  }

  void list_val() {
    const bool testing = options_.split == "test";
    if (!layout_.val.empty()) {
      name_classes();
      take_folder(layout_.val);
      if (testing)
        listing_.note("no test/ folder: tested on ", layout_.val.filename().string(), "/");
      return;
    }
    require_train();
    take_part(read_training_classes(), true);
    if (testing && options_.held_out.fraction == 1) {
      listing_.note("no test/ or val/ folder: tested on all images");
    } else if (testing) {
      listing_.note("no test/ or val/ folder: tested on the ", percent(),
                    " of every class that training holds out (seed ", options_.seed,
                    "); --data-option val_fraction=1 tests all images");
    }
  }

  void require_train() const {
    if (!layout_.train.empty()) return;
    throw sdk::invalid("has ",
                       (layout_.val.empty() ? layout_.test : layout_.val).filename().string(),
                       "/ but no train/; ", expected_layout);
  }

  // Numbers the classes as the model does, or as the folders of train/.
  void name_classes() {
    for (const std::string& name : options_.class_names) add_class(name);
    if (!listing_.class_names.empty()) return;
    require_train();
    if (options_.by_names) {
      for (const ClassFolder& one : classes_of_names(layout_.train)) add_class(one.name);
    } else {
      for (const std::string& folder : folders_.class_folders(layout_.train))
        add_class(as_utf8(folder));
    }
    check_class_count();
  }

  std::vector<ClassFolder> read_training_classes() {
    std::vector<ClassFolder> classes = read_tree(layout_.train);
    if (!options_.classes_only && !options_.by_names) {
      require_classes(classes);
      require_no_parts(classes);
    }
    for (const std::string& name : options_.class_names) add_class(name);
    if (listing_.class_names.empty()) {
      for (const ClassFolder& one : classes) {
        if (label_of(one.name) >= 0) {
          throw sdk::invalid("two class folders are called '", one.name,
                             "', which differ in bytes alone (accents, blanks, UTF-8 and Latin-1): "
                             "rename one");
        }
        add_class(one.name);
      }
    }
    check_class_count();
    listing_.note_similar_classes();
    for (const ClassFolder& one : classes) {
      if (!one.files.empty()) continue;
      throw sdk::invalid("class folder '", inside(layout_.train, one.name), "' holds no image",
                         one.other_files.empty()
                             ? std::string(" (it is empty)")
                             : sdk::text(" (only ", text_of(one.other_files), ")"),
                         "; add images, or keep the folder elsewhere");
    }
    check_known(layout_.train, classes);
    return classes;
  }

  // The classes of a tree with at least one image.
  std::vector<ClassFolder> read_tree(const fs::path& tree) {
    std::vector<ClassFolder> classes =
        options_.by_names ? classes_of_names(tree) : folders_.read_classes(tree);
    const std::string where = inside(tree, "");
    if (classes.empty()) {
      if (read_entries(tree).images > 0) throw no_classes(tree);
      throw sdk::invalid(where, "holds no images; ", expected_layout, without(tree));
    }
    size_t images = 0;
    for (const ClassFolder& one : classes) {
      images += one.files.size();
      for (const auto& [extension, count] : one.other_files) left_out_[extension] += count;
    }
    if (images > 0) return classes;
    if (read_entries(tree).images > 0) throw no_classes(tree);
    const std::string others =
        left_out_.empty() ? "" : sdk::text(" (only ", text_of(left_out_), ")");
    throw sdk::invalid(where, "holds no images", others, "; ", expected_layout, without(tree));
  }

  // The pictures of one list are often in several folders, which are no classes.
  void require_no_parts(const std::vector<ClassFolder>& classes) const {
    if (!are_named_as_parts(classes)) return;
    const std::string list = list_beside(layout_.train);
    if (list.empty()) return;
    throw sdk::invalid("'", classes[0].name, "' and '", classes[1].name,
                       "' differ by a number alone, as parts of one set of images", list,
                       "; if they are classes, give ", classes_option);
  }

  // What is done where there is no such folder, for messages about one that is of no use.
  [[nodiscard]] std::string without(const fs::path& tree) const {
    const std::string name = tree.filename().string();
    if (tree == layout_.val) {
      return sdk::text("; without the folder ", name, "/ ", percent(),
                       " of the training images of every class are held out: remove or move it");
    }
    if (tree != layout_.test) return "";
    return sdk::text("; without the folder ", name,
                     "/ what validates is tested: remove or move it");
  }

  [[nodiscard]] sdk::Refusal no_classes(const fs::path& tree) const {
    const std::string list = list_beside(tree), advice = advice_on_names(tree);
    return sdk::invalid(
        inside(tree, ""), "holds ", read_entries(tree).images, " images but no class folders; ",
        expected_layout,
        list.empty() ? ", or a list of the images and their classes (CSV: path,label)" : list,
        advice.empty() ? sdk::text("; for names that begin with their classes (cat.0.jpg, "
                                   "dog.12.jpg), give ",
                                   prefix_option)
                       : advice,
        without(tree));
  }

  // Where pictures are in one folder, their classes often are in a list beside it or in it.
  [[nodiscard]] std::string list_beside(const fs::path& tree) const {
    for (const fs::path& folder : {fs::path(options_.source), tree}) {
      std::error_code failure;
      for (fs::directory_iterator at(folder, failure), end; !failure && at != end;
           at.increment(failure)) {
        const std::string extension = extension_of(at->path().filename().string());
        if (extension != ".csv" && extension != ".tsv") continue;
        return sdk::text("; if '", at->path().string(), "' has the classes, give it as --data",
                         folder == tree ? "" : ", with --data-option root=" + tree.string());
      }
    }
    return "";
  }

  void check_class_count() const {
    const std::vector<std::string>& names = listing_.class_names;
    if (names.size() > 1) return;
    if (names.empty())
      throw sdk::invalid(inside(layout_.train, ""), "has no class folders; ", expected_layout);
    const fs::path only = layout_.train / names[0];
    const bool wrapper =
        picture::path_status(only).is_folder() && read_entries(only).folders.size() > 1;
    throw sdk::invalid(
        "there is one class only, '", names[0], "'; a classifier needs at least two",
        wrapper ? sdk::text(" (did you mean '", only.string(), "'?)") : list_beside(layout_.train),
        wrapper || options_.by_names ? "" : advice_on_names(layout_.train));
  }

  void check_known(const fs::path& tree, const std::vector<ClassFolder>& classes) const {
    const std::vector<std::string>& known = listing_.class_names;
    for (const ClassFolder& one : classes) {
      if (label_of(one.name) >= 0) continue;
      throw sdk::invalid("class folder '", inside(tree, one.name), "' is unknown to training",
                         did_you_mean(one.name, known), "; known classes: ", list_of(known));
    }
  }

  // Every image of val/ or test/.
  void take_folder(const fs::path& tree) {
    const std::vector<ClassFolder> classes = read_tree(tree);
    check_known(tree, classes);
    take_all(tree, classes);
    listing_.note_missing_classes(inside(tree, ""));
  }

  void take_all(const fs::path& tree, const std::vector<ClassFolder>& classes) {
    for (const ClassFolder& one : classes) {
      const int64_t label = label_of(one.name);
      for (const std::string& file : one.files) take(tree, label, file);
    }
  }

  // Takes the images of train/ that are held out for validation, or the others.
  void take_part(const std::vector<ClassFolder>& classes, bool held_out) {
    listing_.split_is_drawn = true;
    for (const ClassFolder& one : classes) {
      const std::vector<bool> held =
          choose_held_out(one.name, one.files.size(), options_.held_out, options_.seed);
      const int64_t label = label_of(one.name);
      for (size_t i = 0; i < held.size(); ++i) {
        if (held[i] == held_out) take(layout_.train, label, one.files[i]);
      }
      if (held.size() == 1 && held_out && !held[0]) {
        listing_.note("class '", one.name, "' has one image: none of it is held out");
      }
    }
    if (listing_.images.empty() && held_out && options_.held_out.is_share()) {
      throw sdk::invalid(options_.held_out.why_none());
    }
    if (listing_.images.empty()) {
      throw sdk::invalid("val_fraction ", options_.held_out.fraction, " leaves no image ",
                         held_out ? "for validation" : "to train on");
    }
  }

  void take(const fs::path& tree, int64_t label, const std::string& file) {
    listing_.images.push_back({(tree / file).string(), label, {}});
  }

  // -1: unknown.
  [[nodiscard]] int64_t label_of(const std::string& name) const {
    const auto found = labels_.find(name);
    return found == labels_.end() ? -1 : found->second;
  }
  void add_class(const std::string& name) {
    labels_.try_emplace(as_utf8(name), static_cast<int64_t>(listing_.class_names.size()));
    listing_.class_names.push_back(name);
  }

  // "train/cat", or "cat" if the source is the tree itself; "train/ " without a name.
  [[nodiscard]] std::string inside(const fs::path& tree, const std::string& name) const {
    const std::string prefix = layout_.separate ? tree.filename().string() + "/" : "";
    if (!name.empty()) return prefix + name;
    return prefix.empty() ? "" : prefix + " ";
  }

  [[nodiscard]] std::string percent() const {
    return sdk::text(std::round(options_.held_out.fraction * 1000) / 10, " %");
  }

  void note_left_out() {
    int64_t count = 0;
    for (const auto& [extension, files] : left_out_) count += files;
    if (count > 0) {
      listing_.note(count, count == 1 ? " file has" : " files have", " a name of no image and ",
                    count == 1 ? "is" : "are", " left out: ", text_of(left_out_));
    }
    for (const std::string& line : folders_.notes()) listing_.note(line);
  }

  const ListingOptions& options_;
  Layout layout_;
  FolderReader folders_;
  Listing listing_;
  std::unordered_map<std::string, int64_t> labels_;  // of the classes, by name
  std::map<std::string, int64_t> left_out_;
};

Listing list_paths(const ListingOptions& options) {
  Listing listing;
  listing.class_names = options.class_names;
  for (const std::string& path : picture::lines_of(options.source.c_str())) {
    if (!picture::path_status(path).exists()) throw sdk::invalid("'", path, "' does not exist");
    if (!picture::path_status(path).is_folder()) {
      listing.images.push_back({path, 0, {}});
      continue;
    }
    const std::vector<std::string> files = read_images(path).files;
    if (files.empty()) throw sdk::invalid("folder '", path, "' holds no images");
    for (const std::string& file : files)
      listing.images.push_back({(fs::path(path) / file).string(), 0, {}});
  }
  if (listing.images.empty()) throw sdk::invalid("no file or folder is named");
  return listing;
}

}  // namespace

ImageFolder::ImageFolder(const tandem_dataset_request& request, const sdk::Attributes& attributes) {
  ListingOptions options = listing_options(request, attributes);
  options.classes_only = attributes.text("layout") == "classes";
  options.by_names = attributes.text("layout") == "prefix";
  begin(request, attributes,
        options.split == "predict" ? list_paths(options) : Lister(options).list());
}

std::vector<sdk::Parameter> ImageFolder::parameters() {
  constexpr const char* block = "image_folder_param";
  std::vector<sdk::Parameter> parameters = parameters_of(block);
  parameters.push_back(sdk::word(block, "layout")
                           .one_of("auto|classes|prefix")
                           .by_default("auto")
                           .help("classes: every folder is a class, whatever its name; prefix: the "
                                 "name of each image begins with its class, as cat.0.jpg"));
  return parameters;
}

}  // namespace tandem::image_folder
