// One run of backward: which nodes take part, what each still waits for, the gradients that
// arrived.
//
// A node's place is written into the node itself while the task works on it, so that no hash map is
// needed; nodes that another task holds at the same time go through a map of the task's own.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "autograd/hooks.h"
#include "autograd/node.h"

namespace weft::autograd {

struct NodeState {
  Node* node = nullptr;
  int32_t waiting = 0;    // gradients still to come
  bool needed = true;     // false: known, but its gradients lead to none of the inputs
  bool captured = false;  // some input asks for a gradient that arrives here
  bool owned = false;     // the node's scratch fields are ours
  TensorList grads;       // one per result of the node; empty until the first arrives
};

// The vectors are used again by the next task of the thread.
class Task {
 public:
  struct Capture {
    uint32_t state;
    uint32_t index;
    uint32_t input;
  };

  // From the calling thread's store; back to it by ~Pooled.
  class Pooled {
   public:
    Pooled();
    ~Pooled();
    Pooled(const Pooled&) = delete;
    Pooled& operator=(const Pooled&) = delete;
    Task* operator->() const noexcept { return task_; }
    Task& operator*() const noexcept { return *task_; }

   private:
    Task* task_;
    bool outer_filter_;
  };

  // The place of a node; made when it has none yet.
  uint32_t place(Node* node);
  // -1 when the node takes no part.
  int64_t find(const Node* node) const;

  void push_ready(uint32_t state);
  uint32_t pop_ready();
  bool has_ready() const noexcept { return !ready_.empty(); }

  uint64_t id = 0;        // of this run
  Task* outer = nullptr;  // the run in whose node this one was started
  std::vector<NodeState> states;
  std::vector<Capture> captures;
  std::vector<Edge> roots;
  std::vector<AccumulatedHook> at_end;

 private:
  friend class Node;
  Task() = default;
  void clear();

  struct Ready {
    uint64_t sequence;
    uint32_t state;
    bool operator<(const Ready& other) const noexcept { return sequence < other.sequence; }
  };
  std::vector<Ready> ready_;  // a heap
  std::unordered_map<const Node*, uint32_t> contended_;
};

// The runs of backward under way in this thread, the innermost first, each by a number of its own.
std::vector<uint64_t> running_backwards();
// Runs the function when the innermost has computed all gradients. RuntimeError outside of any.
void call_at_end(AccumulatedHook function);
// Whether the innermost computes a gradient that arrives at this node.
bool takes_part(const Node& node);

// Runs one node at a time, whatever thread it is called from.
class NodeLock {
 public:
  explicit NodeLock(Node& node);
  ~NodeLock();
  NodeLock(const NodeLock&) = delete;
  NodeLock& operator=(const NodeLock&) = delete;

 private:
  Node& node_;
};

}  // namespace weft::autograd
