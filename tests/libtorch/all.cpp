// The programs of this folder in one unit, since their headers take most of the time of compiling.
// The first word of the command line says which one runs.
#include "bindings.cpp"
#include "absent.cpp"
#include "archives.cpp"
#include "batches.cpp"
#include "composed.cpp"
#include "functions.cpp"
#include "layers.cpp"
#include "memory.cpp"
#include "module_texts.cpp"
#include "modules.cpp"
#include "packages.cpp"
#include "tensors.cpp"
#include "training.cpp"

#include <map>

int main(int count, char** arguments) {
  const std::map<std::string, void (*)(const Words&)> programs = {
      {"bindings", bindings::program},
      {"absent", absent::program},
      {"archives", archives::program},
      {"batches", batches::program},
      {"composed", composed::program},
      {"functions", functions::program},
      {"layers", layers::program},
      {"memory", memory::program},
      {"module_texts", module_texts::program},
      {"modules", modules::program},
      {"packages", packages::program},
      {"tensors", tensors::program},
      {"training", training::program},
  };
  const Words words(arguments + 1, arguments + count);
  programs.at(words.at(0))({words.begin() + 1, words.end()});
}
