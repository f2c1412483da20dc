#include "config/toml_node.h"

#include <cstdio>
#include <cstdlib>
#include <sstream>

namespace optim_offload {
namespace {

constexpr size_t kLongestText = 120;  // Characters of a value that a message repeats.

template <class... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};
// Which clang needs up to 16.
template <class... Ts>
Overloaded(Ts...) -> Overloaded<Ts...>;

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      // A control character would act on the reader's terminal.
      char buffer[8];
      std::snprintf(buffer, sizeof buffer, "\\u%04X", static_cast<unsigned>(c));
      out += buffer;
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string number(double v) {
  std::ostringstream out;
  out.precision(17);
  out << v;
  std::string exact = out.str();
  out.str({});
  out.precision(6);
  out << v;
  // The short form where it is the same number: 0.1, not 0.10000000000000001.
  return std::strtod(out.str().c_str(), nullptr) == v ? out.str() : exact;
}

}  // namespace

std::string TomlNode::where() const {
  return line > 0 ? source + ":" + std::to_string(line) : source;
}

std::string TomlNode::type_name() const {
  static constexpr const char* kNames[] = {"a date or time", "a boolean", "an integer", "a float",
                                           "a string",       "an array",  "a table"};
  return kNames[value.index()];
}

std::string TomlNode::text() const {
  std::string out =
      std::visit(Overloaded{
                     [](Unsupported) -> std::string { return "(a date or time)"; },
                     [](bool v) -> std::string { return v ? "true" : "false"; },
                     [](int64_t v) { return std::to_string(v); },
                     [](double v) { return number(v); },
                     [](const std::string& v) { return quoted(v); },
                     [](const Array& v) {
                       std::string list = "[";
                       for (size_t i = 0; i < v.size() && list.size() <= kLongestText; ++i) {
                         list += (i ? ", " : "") + v[i]->text();
                       }
                       return list + "]";
                     },
                     [](const Table& v) -> std::string { return v.empty() ? "{}" : "{...}"; },
                 },
                 value);
  if (out.size() > kLongestText) {
    out.resize(kLongestText);
    // Do not leave half a UTF-8 character behind.
    while (!out.empty() && (static_cast<unsigned char>(out.back()) & 0xC0) == 0x80) out.pop_back();
    if (!out.empty() && static_cast<unsigned char>(out.back()) >= 0xC0) out.pop_back();
    out += "...";
  }
  return out;
}

}  // namespace optim_offload
