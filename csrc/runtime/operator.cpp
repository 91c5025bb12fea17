#include "runtime/operator.h"

#include <map>
#include <string>

#include "core/error.h"
#include "core/fork.h"
#include "runtime/builtins.h"

namespace weft {
namespace {

// Whether the record is the one of a kind such as "aten::add.Tensor". The table's names are plain,
// those of builtins have their namespace.
bool is_kind(const OpRecord& record, std::string_view kind) {
  const std::string_view name = record.name, overload = record.overload;
  if (name.find("::") == name.npos) {
    if (!kind.starts_with("aten::")) return false;
    kind.remove_prefix(6);
  }
  if (!kind.starts_with(name)) return false;
  kind.remove_prefix(name.size());
  if (overload.empty()) return kind.empty();
  return kind.starts_with('.') && kind.substr(1) == overload;
}

const OpRecord* find_record(std::string_view kind) {
  for (std::span<const OpRecord> records : {op_records(), builtin_records()}) {
    for (const OpRecord& record : records) {
      if (is_kind(record, kind)) return &record;
    }
  }
  return nullptr;
}

GlobalMutex operators_mutex(ForkRank::Programs);

}  // namespace

// Searched one by one and remembered: a program asks once for each place that calls an operator,
// and a table of them all would cost every process a millisecond.
const Operator* find_operator(std::string_view kind) {
  static std::map<std::string, Operator, std::less<>>& known =
      *new std::map<std::string, Operator, std::less<>>();
  const std::lock_guard lock(operators_mutex);
  const auto found = known.find(kind);
  if (found != known.end()) return &found->second;
  const OpRecord* record = find_record(kind);
  if (!record) return nullptr;
  Operator op{record, record->call, {}};
  for (size_t i = 0; i < record->arg_count; ++i) op.tags.push_back(argument_of(*record, i).tags);
  return &known.emplace(kind, std::move(op)).first->second;
}

}  // namespace weft
