#include "ops/epilogue.h"

namespace weft {
namespace {

thread_local Epilogue* next_epilogue = nullptr;

}  // namespace

EpilogueScope::EpilogueScope(Epilogue* epilogue) { next_epilogue = epilogue; }
EpilogueScope::~EpilogueScope() { next_epilogue = nullptr; }

Around EpilogueScope::take() {
  Epilogue* const taken = next_epilogue;
  next_epilogue = nullptr;
  return {taken};
}

}  // namespace weft
