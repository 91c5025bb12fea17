#include "autograd/task.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace weft::autograd {
namespace {

constexpr size_t kKeepStates = 4096;  // a bigger task is freed after its run

constinit thread_local Task* current WEFT_FAST_TLS = nullptr;
// One idle task per thread; a nested backward makes its own.
thread_local std::unique_ptr<Task> idle;

}  // namespace

Task::Pooled::Pooled() : outer_filter_(mode.filter_edges) {
  static std::atomic<uint64_t> runs{0};
  task_ = idle ? idle.release() : new Task();
  task_->id = runs.fetch_add(1, std::memory_order_relaxed) + 1;
  task_->outer = current;
  current = task_;
  mode.filter_edges = false;
}

Task::Pooled::~Pooled() {
  current = task_->outer;
  mode.filter_edges = outer_filter_;
  task_->clear();
  if (idle || task_->states.capacity() > kKeepStates) {
    delete task_;
  } else {
    idle.reset(task_);
  }
}

void Task::clear() {
  for (NodeState& state : states) {
    if (state.owned) state.node->task_.store(nullptr, std::memory_order_release);
  }
  states.clear();
  captures.clear();
  at_end.clear();
  ready_.clear();
  if (!contended_.empty()) contended_.clear();
  roots.clear();  // last: they keep the nodes alive
}

uint32_t Task::place(Node* node) {
  const void* holder = node->task_.load(std::memory_order_relaxed);
  if (holder == this) return node->task_slot_;
  // Another task may have let go of a node that we met while it held it: look there first.
  if (!contended_.empty()) {
    if (const auto entry = contended_.find(node); entry != contended_.end()) return entry->second;
  }
  const auto fresh = static_cast<uint32_t>(states.size());
  const void* nobody = nullptr;
  const bool free =
      !holder && node->task_.compare_exchange_strong(nobody, this, std::memory_order_acquire);
  if (free) {
    node->task_slot_ = fresh;
  } else {
    contended_.emplace(node, fresh);
  }
  NodeState& state = states.emplace_back();
  state.node = node;
  state.owned = free;
  return fresh;
}

std::vector<uint64_t> running_backwards() {
  std::vector<uint64_t> numbers;
  for (const Task* task = current; task; task = task->outer) numbers.push_back(task->id);
  return numbers;
}

void call_at_end(AccumulatedHook function) {
  WEFT_CHECK(current, "queue_callback: expected a call during backward, got one outside");
  current->at_end.push_back(std::move(function));
}

bool takes_part(const Node& node) {
  const int64_t place = current ? current->find(&node) : -1;
  if (place < 0) return false;
  const NodeState& state = current->states[static_cast<size_t>(place)];
  return state.needed || state.captured;
}

int64_t Task::find(const Node* node) const {
  if (node->task_.load(std::memory_order_relaxed) == this) return node->task_slot_;
  if (contended_.empty()) return -1;
  const auto entry = contended_.find(node);
  return entry == contended_.end() ? -1 : static_cast<int64_t>(entry->second);
}

void Task::push_ready(uint32_t state) {
  ready_.push_back({states[state].node->sequence, state});
  std::push_heap(ready_.begin(), ready_.end());
}

uint32_t Task::pop_ready() {
  std::pop_heap(ready_.begin(), ready_.end());
  const uint32_t state = ready_.back().state;
  ready_.pop_back();
  return state;
}

// A node that is not part of the task itself (inside CopySlices) computes everything.
bool Node::wanted_by_task(size_t edge) const {
  if (!current || current->find(this) < 0) return true;
  const int64_t target = current->find(edges[edge].node.get());
  if (target < 0) return false;
  const NodeState& state = current->states[static_cast<size_t>(target)];
  return state.needed || state.captured;
}

NodeLock::NodeLock(Node& node) : node_(node) {
  if (node.exclusive) node.running_.lock_patiently();
}

NodeLock::~NodeLock() {
  if (node_.exclusive) node_.running_.unlock();
}

}  // namespace weft::autograd
