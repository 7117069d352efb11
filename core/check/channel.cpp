#include "core/check/channel.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "core/base/text/strings.h"

namespace tandem::checker {

namespace {

constexpr char divider = '\x1f';
using Verdict = Outcome::Verdict;
constexpr std::pair<Verdict, const char*> verdicts[] = {{Verdict::kept, "kept"},
                                                        {Verdict::not_applicable, "none"},
                                                        {Verdict::broken, "broken"},
                                                        {Verdict::note, "note"},
                                                        {Verdict::left_out, "left"}};

}  // namespace

void Channel::write(const std::vector<std::string>& fields) const {
  std::string line = fields[0];
  for (size_t i = 1; i < fields.size(); ++i) line += divider + fields[i];
  std::replace(line.begin(), line.end(), '\n', ' ');
  line += '\n';
  for (size_t done = 0; done < line.size();) {
    const ssize_t written = ::write(file_, line.data() + done, line.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) ::_exit(1);
    done += size_t(written);
  }
}

void Channel::write_outcome(const Outcome& outcome) const {
  std::vector<std::string> fields{"", outcome.detail};
  for (const auto& [verdict, word] : verdicts) {
    if (outcome.verdict == verdict) fields[0] = word;
  }
  for (const auto& [name, value] : outcome.figures) {
    fields.push_back(name);
    fields.push_back(fmt::format("{}", value));
  }
  write(fields);
}

std::vector<std::string> fields_of(const std::string& line) {
  return split(line, divider);
}

std::optional<Outcome> outcome_of(const std::vector<std::string>& fields) {
  for (const auto& [verdict, word] : verdicts) {
    if (fields[0] != word) continue;
    Outcome outcome{verdict, fields.size() > 1 ? fields[1] : "", {}};
    for (size_t i = 2; i + 1 < fields.size(); i += 2) {
      outcome.figures[fields[i]] = std::stod(fields[i + 1]);
    }
    return outcome;
  }
  return std::nullopt;
}

}  // namespace tandem::checker
