#include "tests/kernels/cuda_on_cpu.h"

#include <ucontext.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "lib/base/error.h"

namespace mm::kernels::test {
namespace {

constexpr size_t kStackBytes = 256 << 10;

enum class State { kReady, kWarp, kBlock, kDone };

struct Fiber {
  ucontext_t context{};
  std::unique_ptr<char[]> stack = std::make_unique<char[]>(kStackBytes);
  State state = State::kDone;
};

struct Machine {
  ucontext_t scheduler{};
  std::vector<Fiber> fibers;
  std::vector<float> slots;
  const std::function<void()>* kernel = nullptr;
  unsigned current = 0;
};
Machine machine;

void run_thread() {
  (*machine.kernel)();
  Fiber& self = machine.fibers[machine.current];
  self.state = State::kDone;
  swapcontext(&self.context, &machine.scheduler);
}

void wait_as(State state) {
  Fiber& self = machine.fibers[machine.current];
  self.state = state;
  swapcontext(&self.context, &machine.scheduler);
}

// If everyone of [begin, end) who has not ended waits for `state`, they go on.
bool release(unsigned begin, unsigned end, State state) {
  bool waits = false;
  for (unsigned t = begin; t < end; ++t) {
    const State s = machine.fibers[t].state;
    if (s != state && s != State::kDone) return false;
    waits = waits || s == state;
  }
  for (unsigned t = begin; t < end; ++t) {
    if (machine.fibers[t].state == state) machine.fibers[t].state = State::kReady;
  }
  return waits;
}

bool resume_all(unsigned threads) {
  bool ran = false;
  for (unsigned t = 0; t < threads; ++t) {
    if (machine.fibers[t].state != State::kReady) continue;
    machine.current = t;
    threadIdx = {t};
    swapcontext(&machine.scheduler, &machine.fibers[t].context);
    ran = true;
  }
  return ran;
}

void run_block(unsigned threads) {
  for (unsigned t = 0; t < threads; ++t) {
    Fiber& fiber = machine.fibers[t];
    getcontext(&fiber.context);
    fiber.context.uc_stack = {.ss_sp = fiber.stack.get(), .ss_flags = 0, .ss_size = kStackBytes};
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, run_thread, 0);
    fiber.state = State::kReady;
  }
  for (bool going = true; going;) {
    going = resume_all(threads);
    for (unsigned warp = 0; warp < threads; warp += 32)
      going = release(warp, std::min(warp + 32, threads), State::kWarp) || going;
    going = release(0, threads, State::kBlock) || going;
  }
  for (unsigned t = 0; t < threads; ++t)
    MM_CHECK(machine.fibers[t].state == State::kDone, "thread {} waits for ever", t);
}

}  // namespace

void run_grid(dim3 grid, unsigned threads, const std::function<void()>& kernel) {
  if (machine.fibers.size() < threads) machine.fibers = std::vector<Fiber>(threads);
  machine.slots.assign(threads, 0);
  machine.kernel = &kernel;
  gridDim = grid;
  blockDim = {threads};
  for (unsigned y = 0; y < grid.y; ++y) {
    for (unsigned x = 0; x < grid.x; ++x) {
      blockIdx = {x, y};
      run_block(threads);
    }
  }
}

void block_barrier() { wait_as(State::kBlock); }
void warp_barrier() { wait_as(State::kWarp); }
float& warp_slot(unsigned lane) { return machine.slots[threadIdx.x / 32 * 32 + lane]; }

}  // namespace mm::kernels::test
