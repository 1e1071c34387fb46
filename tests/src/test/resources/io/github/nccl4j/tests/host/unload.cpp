// unload.cpp: loads the engine, makes an id in a thread that ends, and closes the library. The id's server still runs.
#include <dlfcn.h>
#include <nccl.h>

#include <cstdio>
#include <thread>

int main(int, char** arguments) {
  void* library = nullptr;
  // A thread that has called the engine keeps it loaded until it ends.
  std::thread([&] {
    library = dlopen(arguments[1], RTLD_NOW);
    auto makeId = reinterpret_cast<decltype(&ncclGetUniqueId)>(dlsym(library, "ncclGetUniqueId"));
    ncclUniqueId id;
    if (makeId(&id) != ncclSuccess) puts("no id");
  }).join();
  dlclose(library);
  bool stays = dlopen(arguments[1], RTLD_NOW | RTLD_NOLOAD) != nullptr;
  puts(stays ? "the engine stays" : "the engine is gone");
  return 0;
}
