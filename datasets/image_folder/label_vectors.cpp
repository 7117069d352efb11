#include "datasets/image_folder/label_vectors.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <unordered_set>

#include "datasets/image_folder/label_cells.h"
#include "datasets/image_folder/label_texts.h"
#include "datasets/image_folder/missing_labels.h"
#include "datasets/image_folder/tag_separator.h"
#include "datasets/picture/names.h"
#include "plugins/sdk.h"

namespace tandem::image_folder {
namespace {

using Parts = std::vector<std::string>;
using picture::beginning_of;

struct Vector {
  Parts parts;       // numbers, at least two; none: the cell holds no vector
  char mark = '\0';  // between them; '[': in brackets
};

std::string place_name(const std::string& heading, size_t place) {
  return sdk::text(heading, "[", place, "]");
}

bool are_numbers(const Parts& parts) {
  double ignored = 0;
  return parts.size() > 1 && std::all_of(parts.begin(), parts.end(), [&](const std::string& one) {
           return read_number(one, &ignored);
         });
}

Vector vector_of(const std::string& text) {
  Cell cell = read_cell(text);
  if (cell.form == Cell::Form::list) {
    return are_numbers(cell.parts) ? Vector{std::move(cell.parts), '['} : Vector{};
  }
  for (const char mark : {'|', ';', ',', ' '}) {
    Parts parts = parts_between(text, mark);
    if (mark == ' ') std::erase(parts, "");
    if (are_numbers(parts)) return {std::move(parts), mark};
  }
  return {};
}

// What the vectors of a column have in common.
struct VectorSurvey {
  size_t count = 0, written = 0;  // of vectors; of cells that are not missing
  size_t length = 0;              // the most frequent one
  bool same_length = true;
  bool is_binary = true, has_fraction = false, has_negative = false;
  bool repeats = false;         // a number stands twice in a cell, as in no set of labels
  bool may_be_numbers = false;  // "3,50", "1 200" and "1,234.5" are one number each
  bool are_thousands = true;    // "1,000.50": the parts are those of one number
  size_t distinct = 0;          // numbers

  [[nodiscard]] bool all_vectors() const { return count > 0 && count == written && same_length; }
  // Places of a vector, and no numbers of labels.
  [[nodiscard]] bool are_places(const std::string& heading) const {
    if (is_binary) return length > 2 || !may_be_numbers;
    if (may_be_numbers && (!has_fraction || are_thousands)) return false;
    // Numbers that hardly repeat name no labels.
    constexpr size_t several = 8;
    const bool are_values = distinct >= several && 2 * distinct > count * length;
    return has_fraction || has_negative || repeats || (are_values && !is_of_labels(heading));
  }
};

// "1,000.50" and "12,345" as parts at commas.
bool are_parts_of_number(const Parts& parts, char mark) {
  constexpr size_t digits = 3;
  if (mark != ',') return false;
  return std::all_of(parts.begin() + 1, parts.end(), [&](const std::string& part) {
    return std::min(part.find_first_not_of("0123456789"), part.size()) == digits;
  });
}

VectorSurvey survey_vectors(const std::vector<Vector>& vectors, const ListFile& list) {
  VectorSurvey result;
  std::map<size_t, size_t> lengths;
  std::unordered_set<std::string_view> distinct;
  for (size_t i = 0; i < vectors.size(); ++i) {
    const auto& [parts, mark] = vectors[i];
    const std::string& text = list.entries[i].labels[0];
    result.written += is_missing(text) ? 0 : 1;
    if (parts.empty()) continue;
    ++result.count;
    ++lengths[parts.size()];
    const bool is_plain = text.find(", ") == std::string::npos;
    result.may_be_numbers = result.may_be_numbers || mark == ' ' || (mark == ',' && is_plain);
    result.are_thousands = result.are_thousands && are_parts_of_number(parts, mark);
    std::unordered_set<std::string_view> own;
    for (const std::string& part : parts) {
      double value = 0;
      (void)read_number(part, &value);
      result.is_binary = result.is_binary && (value == 0 || value == 1);
      result.has_negative = result.has_negative || value < 0;
      result.has_fraction = result.has_fraction || part.find_first_of(".eE") != std::string::npos;
      result.repeats = result.repeats || !own.insert(part).second;
      distinct.insert(part);
    }
  }
  for (const auto& [length, count] : lengths) {
    if (result.length == 0 || count > lengths[result.length]) result.length = length;
  }
  result.same_length = lengths.size() == 1;
  result.distinct = distinct.size();
  return result;
}

// Whether the column is to be divided. With the names of a model or of the training list, these
// tell.
bool holds_vectors(const FormRequest& request, const VectorSurvey& survey,
                   const std::string& heading) {
  if (!survey.all_vectors()) return false;
  const std::vector<std::string>& known = request.model_names;
  if (!known.empty()) {
    return known.size() == survey.length &&
           (request.task == "regression" || survey.are_places(heading) ||
            known[0] == place_name(heading, 0));
  }
  if (request.task == "regression") return !survey.may_be_numbers || survey.has_fraction;
  if (request.task == "multilabel") return survey.is_binary && survey.are_places(heading);
  return survey.are_places(heading);
}

// Of a column most of whose cells are vectors: the first that is none, or of another length.
void refuse_odd(const std::vector<Vector>& vectors, const VectorSurvey& survey,
                const ListFile& list) {
  const bool are_vectors = survey.has_fraction || (survey.is_binary && survey.repeats);
  if (!are_vectors || survey.may_be_numbers || 2 * survey.count <= survey.written) return;
  for (size_t i = 0; i < vectors.size(); ++i) {
    const ListEntry& entry = list.entries[i];
    if (vectors[i].parts.size() == survey.length || is_missing(entry.labels[0])) continue;
    throw sdk::invalid(list.file, ":", entry.line, ": ", title_of(list, 0), " has '",
                       beginning_of(entry.labels[0]), "', where others have ", survey.length,
                       " numbers: every line needs as many (--task multilabel takes each number as "
                       "the name of a label)");
  }
}

}  // namespace

std::string divide_vectors(const FormRequest& request, ListFile& list) {
  const bool wants_names = request.task == "labels" && request.model_names.empty();
  const bool is_whole = picture::lower_case(list.columns[0]) == "class_name";
  if (list.columns.size() != 1 || wants_names || is_whole) return "";
  std::vector<Vector> vectors;
  for (const ListEntry& entry : list.entries) vectors.push_back(vector_of(entry.labels[0]));
  const VectorSurvey survey = survey_vectors(vectors, list);
  if (!holds_vectors(request, survey, list.columns[0])) {
    if (request.task == "auto") refuse_odd(vectors, survey, list);
    return "";
  }
  const std::string title = title_of(list, 0), heading = list.columns[0];
  std::string example;
  const Parts& names = request.model_names.empty() ? request.written_names : request.model_names;
  if (!names.empty() && names.size() != survey.length) {
    throw sdk::invalid("list '", list.file, "': ", title, " has ", survey.length,
                       " numbers in each line, but there are ", names.size(),
                       " names: ", picture::list_of(names));
  }
  list.columns.assign(survey.length, "");
  for (size_t i = 0; i < survey.length && !heading.empty(); ++i) {
    list.columns[i] = names.empty() ? place_name(heading, i) : names[i];
  }
  for (size_t i = 0; i < vectors.size(); ++i) {
    if (example.empty()) example = beginning_of(list.entries[i].labels[0]);
    list.entries[i].labels =
        vectors[i].parts.empty() ? Parts(survey.length) : std::move(vectors[i].parts);
  }
  return sdk::text(title, " has ", survey.length, " numbers in each line, as '", example,
                   "': each place is a column of its own",
                   request.written_names.empty() ? "" : ", with the names that are given");
}

}  // namespace tandem::image_folder
