// What the engine with LibTorch says of GPUs: the text of the file that MM_FAKE_DEVICES names. The
// word "die" ends the process instead.
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

extern "C" void mm_probe_engine_devices(double, void (*take)(void*, const char*), void* context) {
  const char* name = std::getenv("MM_FAKE_DEVICES");
  std::ifstream file(name == nullptr ? "" : name);
  std::stringstream text;
  text << file.rdbuf();
  if (text.str() == "die") ::_exit(139);
  take(context, text.str().c_str());
}
