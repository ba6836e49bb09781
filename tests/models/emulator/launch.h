// Runs a kernel of the emulated GPU, one block after the other: `args` are its arrays.
template <class... Args, std::size_t... I>
static void launch(int grid, int slots, void (*kernel)(Args...), void** args, std::index_sequence<I...>) {
  gridDim.x = grid;
  most_slots = slots;
  for (int block = 0; block < grid; block++) {
    memset(memory.data(), 0xff, memory.size());  // what nobody wrote is not a number
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 384; thread++)
      threads.emplace_back([=] {
        threadIdx.x = thread, blockIdx.x = block;
        kernel((Args)(args[I])...);
      });
    for (auto& thread : threads) thread.join();
  }
}
template <class... Args>
static void launch(int grid, int slots, void (*kernel)(Args...), void** args) {
  launch(grid, slots, kernel, args, std::index_sequence_for<Args...>{});
}
#define RUN(name) \
  extern "C" void run(int grid, void** args) { launch(grid, shared_bytes / 16, name, args); }
