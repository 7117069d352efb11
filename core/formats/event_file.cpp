#include "core/formats/event_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include <event_format.pb.h>
#include "core/base/files/crc32.h"
#include "core/base/files/files.h"
#include "core/base/text/strings.h"

namespace tandem {
namespace {

std::string little_endian(uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i) & 0xffU);
  return text;
}

std::string masked_checksum(const std::string& data) {
  const uint32_t sum = crc32c(data.data(), data.size());
  return little_endian((sum >> 15 | sum << 17) + 0xa282ead8U, 4);
}

// A record of a TFRecord file: length, its checksum, data, their checksum.
void write_record(OutputFile& file, const event_format::Event& event) {
  const std::string data = event.SerializeAsString(), length = little_endian(data.size(), 8);
  const std::string whole = length + masked_checksum(length) + data + masked_checksum(data);
  file.write(whole.data(), whole.size());
}

double seconds_since_1970() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

constexpr size_t number_digits = 10;

// The largest number in the names of the folder's event files; 0 if there is none.
int64_t newest_number(const std::filesystem::path& folder) {
  int64_t newest = 0;
  for (const std::filesystem::path& entry : entries_of(folder)) {
    std::string name = entry.filename().string();
    if (!name.starts_with(event_file_prefix)) continue;
    name.erase(0, std::string(event_file_prefix).size());
    const std::string digits = name.substr(0, name.find('.'));
    int64_t number = 0;
    if (digits.size() > number_digits || !parse_integer(digits, &number)) continue;
    newest = std::max(newest, number);
  }
  return newest;
}

}  // namespace

EventFile::EventFile(std::filesystem::path folder, int64_t resumed_step)
    : folder_(std::move(folder)), resumed_step_(resumed_step) {}

void EventFile::begin() {
  begun_at_ = seconds_since_1970();
  begin_ = Clock::now();
  // The clock may have been set back since the run was interrupted.
  const int64_t number = std::max(static_cast<int64_t>(begun_at_), newest_number(folder_) + 1);
  file_.emplace(
      folder_ / fmt::format("{}{:0{}}.{}", event_file_prefix, number, number_digits, ::getpid()),
      std::filesystem::path{}, OutputMode::append);
  event_format::Event version, session;
  version.set_wall_time(begun_at_);
  version.set_file_version("brain.Event:2");
  write_record(*file_, version);
  session.set_wall_time(begun_at_);
  session.set_step(resumed_step_ > 0 ? resumed_step_ + 1 : 0);
  session.mutable_session_log()->set_status(event_format::SessionLog::START);
  write_record(*file_, session);
}

double EventFile::seconds() const {
  return begun_at_ + std::chrono::duration<double>(Clock::now() - begin_).count();
}

void EventFile::write_event(int64_t step, event_format::Event& event) {
  if (!file_) begin();
  event.set_wall_time(seconds());
  event.set_step(step);
  write_record(*file_, event);
}

void EventFile::write(int64_t step, const std::vector<std::pair<std::string, double>>& figures) {
  event_format::Event event;
  for (const auto& [tag, figure] : figures) {
    event_format::Value& value = *event.mutable_summary()->add_value();
    value.set_tag(tag);
    value.set_simple_value(static_cast<float>(figure));
  }
  write_event(step, event);
}

void EventFile::write_picture(int64_t step, const std::string& tag, int64_t width, int64_t height,
                              const std::string& png) {
  constexpr int rgb = 3;
  event_format::Event event;
  event_format::Value& value = *event.mutable_summary()->add_value();
  value.set_tag(tag);
  event_format::Image& image = *value.mutable_image();
  image.set_width(static_cast<int32_t>(width));
  image.set_height(static_cast<int32_t>(height));
  image.set_colorspace(rgb);
  image.set_encoded_image_string(png);
  write_event(step, event);
}

}  // namespace tandem
