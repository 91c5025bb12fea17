#include <bit>
#include <cstring>

#include "ops/tile_row.h"

namespace weft::tile {

size_t RowWalk::state_bytes(const PassPlan& pass) const {
  size_t nbytes = 0;
  for (const State& state : pass.states) {
    nbytes += Arena::rounded(static_cast<size_t>(lanes()) * state.item);
  }
  return nbytes;
}

void Cascade::open(const RowWalk& walk, const PassPlan& pass, int64_t lanes, char* memory) {
  walk_ = &walk;
  pass_ = &pass;
  lanes_ = lanes;
  memory_ = memory;
  level_bytes_ = walk.state_bytes(pass);
  count_ = 0;
}

void Cascade::level_states(int level, void** states) const {
  char* at = memory_ + static_cast<size_t>(level) * level_bytes_;
  for (size_t i = 0; i < pass_->states.size(); ++i) states[i] = at + pass_->states[i].offset;
}

void Cascade::copy(void* const* to, void* const* from) const {
  for (size_t i = 0; i < pass_->states.size(); ++i) {
    std::memcpy(to[i], from[i], static_cast<size_t>(lanes_) * pass_->states[i].item);
  }
}

void Cascade::merge(void* const* older, void* const* newer) {
  size_t at = 0;
  for (const BoundStep& bound : pass_->tile_steps) {
    const size_t states = bound.step->states;
    if (states == 0) continue;
    void* operands[2 * kMaxOperands];
    for (size_t i = 0; i < states; ++i) {
      operands[i] = older[at + i];
      operands[states + i] = newer[at + i];
    }
    bound.merge(operands, lanes_, walk_->scalars);
    at += states;
  }
}

void Cascade::push(void* const* states) {
  // The counter's carry: every level that is taken merges with what comes up from below.
  void *level[kMaxStates], *lower[kMaxStates];
  void* const* moving = states;
  int k = 0;
  for (; (count_ >> k) & 1u; ++k) {
    level_states(k, level);
    merge(level, moving);
    std::memcpy(lower, level, sizeof(lower));
    moving = lower;
  }
  level_states(k, level);
  copy(level, moving);
  ++count_;
}

void Cascade::finish(void* const* states) {
  if (count_ == 0) return;
  void *newer[kMaxStates], *level[kMaxStates];
  int k = std::countr_zero(count_);
  level_states(k, newer);
  for (++k; count_ >> k; ++k) {
    if (!((count_ >> k) & 1u)) continue;
    level_states(k, level);
    merge(level, newer);
    std::memcpy(newer, level, sizeof(newer));
  }
  copy(states, newer);
  count_ = 0;
}

}  // namespace weft::tile
