// The words of a command line behind the name of a program.
#pragma once

#include <string>
#include <vector>

using Words = std::vector<std::string>;
