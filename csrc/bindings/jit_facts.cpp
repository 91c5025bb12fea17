// The operators by name, as compilers in Python ask for them.
#include <nanobind/nanobind.h>

#include <string_view>
#include <unordered_map>
#include <vector>

#include "bindings/jit.h"
#include "runtime/operator_facts.h"

namespace nb = nanobind;

namespace weft::py {
namespace {

using Index = std::unordered_map<std::string_view, std::vector<const OperatorFacts*>>;

const Index& facts_by_name() {
  static const Index* const index = [] {
    auto* const made = new Index;
    for (const OperatorFacts& each : operator_facts()) (*made)[each.name()].push_back(&each);
    return made;
  }();
  return *index;
}

// [(kind, facts)]
nb::list operators(const char* name) {
  nb::list found;
  const auto at = facts_by_name().find(name);
  if (at == facts_by_name().end()) return found;
  for (const OperatorFacts* each : at->second) {
    found.append(nb::make_tuple(nb::str(each->kind.data(), each->kind.size()),
                                nb::bytes(each->facts.data(), each->facts.size())));
  }
  return found;
}

nb::list operator_names() {
  nb::list names;
  std::string_view last;
  for (const OperatorFacts& each : operator_facts()) {
    if (each.name() == last) continue;
    last = each.name();
    names.append(nb::str(last.data(), last.size()));
  }
  return names;
}

}  // namespace

void bind_operator_facts(nanobind::module_& module) {
  module.def("_operators", &operators, nb::arg("name"),
             "[(kind, facts, marshalled)] of the operators of a name such as \"aten::add\".");
  module.def("_operator_exists", [](const char* name) { return facts_by_name().contains(name); });
  module.def("_operator_names", &operator_names, "Names, in the order of the table; some twice.");
}

}  // namespace weft::py
