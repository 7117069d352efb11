// The lines by which the child process of a check tells its parent what it tries and finds.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/check/promises/promises.h"

namespace tandem::checker {

// What the child writes: one line each, of fields divided by a character of its own.
//   type TARGET TYPE NUMBER KIND  the next unit: a layer type, or a data set ("data")
//   unit PROMISE NUMBER TEXT this is next
//   case ARGUMENTS           in this case
//   kept | none | broken DETAIL | note DETAIL NAME VALUE NAME VALUE ... | left DETAIL
//   skip                     it is not asked for
//   fail DETAIL              nothing can be checked
//   end | late               all is done; the time is over
class Channel {
 public:
  explicit Channel(int file) : file_(file) {}
  // Ends the process if nobody reads.
  void write(const std::vector<std::string>& fields) const;
  void write_outcome(const Outcome& outcome) const;
  [[nodiscard]] int file() const { return file_; }

 private:
  int file_;
};

// The fields of a line, at least one.
[[nodiscard]] std::vector<std::string> fields_of(const std::string& line);
// That of a line by write_outcome(); empty of another line.
[[nodiscard]] std::optional<Outcome> outcome_of(const std::vector<std::string>& fields);

}  // namespace tandem::checker
