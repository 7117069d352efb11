#include "core/formats/pickle.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <unordered_map>

#include "core/base/error.h"
#include "core/base/text/strings.h"

namespace tandem {
namespace {

using Kind = PickleValue::Kind;

constexpr size_t max_values = 1'000'000;

// What a call of a global makes.
enum class Maker { dict, list, tensor, parameter, other, type };

struct Known {
  std::string_view name;
  Maker maker;
};
// Settings and counters, which checkpoints have beside their weights, are read as nothing.
constexpr std::array<Known, 29> known_globals{{
    {"collections.OrderedDict", Maker::dict},
    {"torch._utils._rebuild_tensor_v2", Maker::tensor},
    {"torch._utils._rebuild_tensor", Maker::tensor},  // before PyTorch 0.4
    {"torch._utils._rebuild_parameter", Maker::parameter},
    {"torch.Size", Maker::list},
    {"torch.FloatStorage", Maker::type},
    {"torch.HalfStorage", Maker::type},
    {"torch.BFloat16Storage", Maker::type},
    {"torch.DoubleStorage", Maker::type},
    {"torch.LongStorage", Maker::type},
    {"torch.IntStorage", Maker::type},
    {"torch.ShortStorage", Maker::type},
    {"torch.CharStorage", Maker::type},
    {"torch.ByteStorage", Maker::type},
    {"torch.BoolStorage", Maker::type},
    {"torch.device", Maker::other},
    {"torch.float32", Maker::type},
    {"torch.float16", Maker::type},
    {"torch.bfloat16", Maker::type},
    {"pathlib.Path", Maker::other},
    {"pathlib.PosixPath", Maker::other},
    {"collections.defaultdict", Maker::other},
    {"argparse.Namespace", Maker::other},
    {"numpy.core.multiarray.scalar", Maker::other},
    {"numpy._core.multiarray.scalar", Maker::other},
    {"numpy.dtype", Maker::other},
    {"_codecs.encode", Maker::other},
    {"__builtin__.set", Maker::other},
    {"builtins.set", Maker::other},
}};

const Known* find_known(std::string_view name) {
  const auto* const found = std::find_if(known_globals.begin(), known_globals.end(),
                                         [name](const Known& known) { return known.name == name; });
  return found == known_globals.end() ? nullptr : found;
}

// The machine that a pickle is a program of: a stack, marks on it, and a memo.
class Machine {
 public:
  Machine(std::string_view bytes, const std::string& file) : bytes_(bytes), file_(file) {}

  PickleTree run() {
    while (!step(take<uint8_t>())) {
    }
    tree_.root = pop();
    tree_.bytes = at_;
    return std::move(tree_);
  }

 private:
  [[noreturn]] void damaged(const std::string& why) const {
    throw error("'{}' is damaged or no state dict of PyTorch: {} (byte {} of its pickle)", file_,
                why, at_);
  }

  template <class T>
  T take() {
    T value{};
    const std::string_view from = take_bytes(sizeof(T));
    std::memcpy(&value, from.data(), sizeof(T));
    return value;
  }
  std::string_view take_bytes(uint64_t count) {
    if (count > bytes_.size() - at_) damaged("it ends too early");
    const std::string_view taken = bytes_.substr(at_, count);
    at_ += count;
    return taken;
  }
  std::string_view take_line() {
    const size_t end = bytes_.find('\n', at_);
    if (end == std::string_view::npos) damaged("it ends too early");
    const std::string_view line = take_bytes(end - at_);
    ++at_;
    return line;
  }

  // A new value on the stack.
  PickleValue& push(Kind kind) {
    if (tree_.values.size() >= max_values) damaged("it has more than a million values");
    stack_.push_back(static_cast<uint32_t>(tree_.values.size()));
    tree_.values.emplace_back().kind = kind;
    return tree_.values.back();
  }
  void push_integer(int64_t integer) { push(Kind::integer).integer = integer; }
  void push_text(std::string_view text) { push(Kind::text).text = text; }

  [[nodiscard]] size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  uint32_t top() const {
    if (stack_.size() <= floor()) damaged("a value is missing");
    return stack_.back();
  }
  uint32_t pop() {
    const uint32_t value = top();
    stack_.pop_back();
    return value;
  }
  std::vector<uint32_t> pop_many(size_t count) {
    if (stack_.size() - floor() < count) damaged("a value is missing");
    std::vector<uint32_t> values(stack_.end() - static_cast<ptrdiff_t>(count), stack_.end());
    stack_.resize(stack_.size() - count);
    return values;
  }
  std::vector<uint32_t> pop_to_mark() {
    if (marks_.empty()) damaged("a mark is missing");
    std::vector<uint32_t> values(stack_.begin() + static_cast<ptrdiff_t>(marks_.back()),
                                 stack_.end());
    stack_.resize(marks_.back());
    marks_.pop_back();
    return values;
  }

  void push_list(std::vector<uint32_t> items) { push(Kind::list).items = std::move(items); }
  // Into the list, set or dict on top of the stack; what is set in other values is not needed.
  void add(const std::vector<uint32_t>& items, Kind kind) {
    PickleValue& target = tree_.values[top()];
    if (kind == Kind::dict && items.size() % 2 != 0) damaged("a key has no value");
    if (target.kind == Kind::other) return;
    if (target.kind != kind) damaged("items are added to what is no list or dict");
    target.items.insert(target.items.end(), items.begin(), items.end());
  }

  void push_global(std::string_view module, std::string_view name) {
    const std::string whole = fmt::format("{}.{}", module, name);
    if (find_known(whole) == nullptr) {
      constexpr size_t shown = 200;
      throw error(
          "'{}' holds the Python object {}, and is read without executing anything: save tensors "
          "only, with torch.save(model.state_dict(), 'weights.pth')",
          file_, quote(whole.substr(0, shown)));
    }
    push(Kind::global).text = whole;
  }

  const PickleValue& item(const PickleValue& list, size_t i, Kind kind, const char* what) const {
    if (i < list.items.size() && tree_.at(list.items[i]).kind == kind) {
      return tree_.at(list.items[i]);
    }
    damaged(fmt::format("a tensor has no {}", what));
  }

  // A function and its arguments become what it makes.
  void call(uint32_t function, uint32_t arguments) {
    const PickleValue& given = tree_.at(arguments);
    const Known* known = find_known(tree_.at(function).text);
    if (tree_.at(function).kind != Kind::global || known == nullptr || given.kind != Kind::list) {
      damaged("it calls what is no function");
    }
    switch (known->maker) {
      case Maker::dict:
        return call_dict(given);
      case Maker::list: {
        const uint32_t items = given.items.empty() ? arguments : given.items.front();
        return stack_.push_back(items);
      }
      case Maker::parameter:
        item(given, 0, Kind::tensor, "values");
        return stack_.push_back(given.items.front());
      case Maker::tensor: {
        item(given, 0, Kind::list, "storage");
        item(given, 2, Kind::list, "shape");
        item(given, 3, Kind::list, "strides");
        const int64_t first = item(given, 1, Kind::integer, "place").integer;
        const std::vector<uint32_t> items{given.items[0], given.items[2], given.items[3]};
        PickleValue& tensor = push(Kind::tensor);
        tensor.integer = first;
        tensor.items = items;
        return;
      }
      case Maker::other:
        push(Kind::other);
        return;
      case Maker::type:
        break;
    }
    damaged("it calls what is no function");
  }
  // OrderedDict(), or of Python 2 OrderedDict([[key, value], ...]).
  void call_dict(const PickleValue& given) {
    std::vector<uint32_t> items;
    if (!given.items.empty()) {
      for (const uint32_t pair : tree_.at(given.items.front()).items) {
        if (tree_.at(pair).items.size() != 2) damaged("a key has no value");
        if (++copied_ > max_values) damaged("it has more than a million values");
        items.insert(items.end(), tree_.at(pair).items.begin(), tree_.at(pair).items.end());
      }
    }
    push(Kind::dict).items = std::move(items);
  }

  void remember(uint64_t place) { memo_[place] = top(); }
  void recall(uint64_t place) {
    const auto found = memo_.find(place);
    if (found == memo_.end()) damaged("it recalls what it has not read");
    stack_.push_back(found->second);
  }

  void push_long(std::string_view bytes) {
    if (bytes.size() > sizeof(int64_t)) {  // as of the file's magic number
      push(Kind::other).text = bytes;
      return;
    }
    uint64_t value = 0;
    std::memcpy(&value, bytes.data(), bytes.size());
    const unsigned spare = 64 - 8 * static_cast<unsigned>(bytes.size());
    push_integer(spare == 64 ? 0 : static_cast<int64_t>(value << spare) >> spare);
  }

  // True at the end.
  bool step(uint8_t code) {
    switch (code) {
      case '.':
        return true;
      case 0x80:
        take<uint8_t>();
        break;  // the protocol
      case 0x95:
        take<uint64_t>();
        break;  // a frame
      case '(':
        marks_.push_back(stack_.size());
        break;
      case '0':
        pop();
        break;
      case '1':
        pop_to_mark();
        break;
      case '2':
        stack_.push_back(top());
        break;
      case 'q':
        remember(take<uint8_t>());
        break;
      case 'r':
        remember(take<uint32_t>());
        break;
      case 0x94:
        remember(memo_.size());
        break;
      case 'h':
        recall(take<uint8_t>());
        break;
      case 'j':
        recall(take<uint32_t>());
        break;
      default:
        if (!push_value(code) && !build(code)) {
          damaged(fmt::format("operation {:#04x} is not of a state dict", code));
        }
    }
    return false;
  }

  bool push_value(uint8_t code) {
    switch (code) {
      case 'N':
        push(Kind::none);
        break;
      case 0x88:
        push_integer(1);
        break;
      case 0x89:
        push_integer(0);
        break;
      case 'K':
        push_integer(take<uint8_t>());
        break;
      case 'M':
        push_integer(take<uint16_t>());
        break;
      case 'J':
        push_integer(take<int32_t>());
        break;
      case 0x8a:
        push_long(take_bytes(take<uint8_t>()));
        break;
      case 'G':
        take<uint64_t>();
        push(Kind::other);
        break;
      case 'U':
      case 'C':
      case 0x8c:
        push_text(take_bytes(take<uint8_t>()));
        break;
      case 'T':
      case 'B':
      case 'X':
        push_text(take_bytes(take<uint32_t>()));
        break;
      case 0x8d:
      case 0x8e:
        push_text(take_bytes(take<uint64_t>()));
        break;
      case '}':
        push(Kind::dict);
        break;
      case ']':
      case ')':
      case 0x8f:
        push(Kind::list);
        break;
      default:
        return false;
    }
    return true;
  }

  bool build(uint8_t code) {
    switch (code) {
      case 't':
      case 'l':
      case 0x91:
        push_list(pop_to_mark());
        break;
      case 'd': {
        std::vector<uint32_t> items = pop_to_mark();
        push(Kind::dict);
        add(items, Kind::dict);
        break;
      }
      case 0x85:
        push_list(pop_many(1));
        break;
      case 0x86:
        push_list(pop_many(2));
        break;
      case 0x87:
        push_list(pop_many(3));
        break;
      case 'a':
        add(pop_many(1), Kind::list);
        break;
      case 's':
        add(pop_many(2), Kind::dict);
        break;
      case 'e':
      case 0x90:
        add(pop_to_mark(), Kind::list);
        break;
      case 'u':
        add(pop_to_mark(), Kind::dict);
        break;
      case 'b':
        pop();
        break;  // attributes, as a state dict's versions
      case 'Q':
        break;  // a storage, described by the tuple on the stack
      case 'c': {
        const std::string_view module = take_line();
        push_global(module, take_line());
        break;
      }
      case 0x93: {
        const std::vector<uint32_t> names = pop_many(2);
        push_global(tree_.at(names[0]).text, tree_.at(names[1]).text);
        break;
      }
      case 'R':
      case 0x81: {
        const std::vector<uint32_t> both = pop_many(2);
        call(both[0], both[1]);
        break;
      }
      default:
        return false;
    }
    return true;
  }

  std::string_view bytes_;
  const std::string& file_;
  size_t at_ = 0;
  PickleTree tree_;
  std::vector<uint32_t> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint64_t, uint32_t> memo_;
  size_t copied_ = 0;  // items of lists that became dicts, which a pickle may repeat
};

}  // namespace

const PickleValue* PickleTree::find(const PickleValue& dict, std::string_view key) const {
  if (dict.kind != Kind::dict) return nullptr;
  const PickleValue* found = nullptr;  // the last one counts
  for (size_t i = 0; i + 1 < dict.items.size(); i += 2) {
    const PickleValue& name = at(dict.items[i]);
    if (name.kind == Kind::text && name.text == key) found = &at(dict.items[i + 1]);
  }
  return found;
}

PickleTree read_pickle(std::string_view bytes, const std::string& file) {
  return Machine(bytes, file).run();
}

}  // namespace tandem
