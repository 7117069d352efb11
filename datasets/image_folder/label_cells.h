// What one cell of a column of labels holds where programs write several values into it: a list of
// Python's, of JSON or of numpy's, or texts with a mark between them. All lists of a column are
// read cell by cell, so that plain names may stand beside them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tandem::image_folder {

struct Cell {
  enum class Form {
    text,   // a name, or names with marks between them
    list,   // in brackets: ['a', 'b'], ("a",), {'a', 'b'}, ['a' 'b'], {"choices": ["a", "b"]}
    nested  // in brackets, with more than values: a list of lists, a dictionary
  };
  Form form = Form::text;
  bool is_sure = false;            // a list that is no name with brackets around it
  std::vector<std::string> parts;  // of a list, in their order, without quotes
};
[[nodiscard]] Cell read_cell(std::string_view text);

// The texts between the marks, without blanks at their ends, in their order; also empty ones.
[[nodiscard]] std::vector<std::string> parts_between(std::string_view text, char mark);

// The names in a text, each once. Separator '[': of a list, or else with commas between them; '\0':
// the text is one name.
[[nodiscard]] std::vector<std::string> split_at(const std::string& text, char separator);

}  // namespace tandem::image_folder
